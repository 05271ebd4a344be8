// behind a seccomp filter that kills at getpid, prctl, prlimit and fork do not call it in a restricted program
#include "check.h"
#include "seccomp_filter.h"

#include <sys/resource.h>
#include <sys/wait.h>

int main(void) {
    struct sock_filter filter[] = {ANSWER_CALL(getpid, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {COUNT(filter), filter};
    struct rlimit limit;
    pid_t self = getpid();
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "the first prctl: %s", strerror(errno));
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        SKIP("this process may not install a seccomp filter");
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "the second prctl: %s", strerror(errno));
    CHECK(getrlimit(RLIMIT_CORE, &limit) == 0, "getrlimit: %s", strerror(errno));
    CHECK(prlimit(self, RLIMIT_CORE, &limit, NULL) == 0, "prlimit: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        free(malloc_touched(3 * MB, 1));
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child: status %#x", (unsigned)status);
}
