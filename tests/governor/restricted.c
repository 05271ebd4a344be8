// a process that restricted itself ends with its last thread
#include "seccomp_filter.h"

static void *outlive(void *unused) {
    sleep_ms(200);
    return unused;
}

static void end_by_pthread_exit(void) {
    pthread_t thread;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    pthread_create(&thread, NULL, outlive, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void end_in_strict_mode(void) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_exit, 0);
}

static void end_by_filter(void) {
    struct sock_filter code[] = {ANSWER_CALL(getppid, SECCOMP_RET_KILL_THREAD)};
    struct sock_fprog filter = {COUNT(code), code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    syscall(SYS_getppid);
    _exit(7);
}

static void check_end(const char *name, void (*end)(void)) {
    pid_t child = fork();
    if (child == 0) {
        start_governor();
        end();
    }
    int status = await_child(child);
    CHECK(status == 0 || WTERMSIG(status) == SIGSYS, "%s: status %#x", name, status);
}

int main(void) {
    check_end("pthread_exit", end_by_pthread_exit);
    check_end("strict mode", end_in_strict_mode);
    check_end("filter", end_by_filter);

    start_governor();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    CHECK(count_threads("flarena") == 0, "the governor runs in a restricted process");
}
