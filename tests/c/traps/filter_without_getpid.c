// behind a seccomp filter that kills at getpid, prctl, prlimit and fork do not call it in a restricted program
#include "seccomp_filter.h"

int main(void) {
    struct sock_filter filter[] = {ANSWER_CALL(getpid, SECCOMP_RET_KILL_PROCESS)};
    struct rlimit limit;
    pid_t self = getpid();
    install_filter(filter, COUNT(filter), 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "the second prctl: %s", strerror(errno));
    CHECK(getrlimit(RLIMIT_CORE, &limit) == 0, "getrlimit: %s", strerror(errno));
    CHECK(prlimit(self, RLIMIT_CORE, &limit, NULL) == 0, "prlimit: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        free(malloc_touched(3 * MB, 1));
        _exit(0);
    }
    CHECK_CHILD(child);
}
