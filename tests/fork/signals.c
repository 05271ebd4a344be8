// Signal handlers that fork.
#include "tests.h"

static volatile sig_atomic_t forks, failed;

static int fork_and_wait(void) {
    int status = -1;
    pid_t pid = fork(), seen;
    if (pid == 0)
        _exit(0);
    while ((seen = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    return pid > 0 && seen == pid && status == 0;
}

static void fork_in_handler(int signal) {
    int saved = errno;
    failed |= !fork_and_wait();
    forks++;
    errno = saved;
}

TEST("a signal handler that forks while malloc or free is interrupted hangs neither process") {
    signal(SIGVTALRM, fork_in_handler);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    CHECK(setitimer(ITIMER_VIRTUAL, &every, NULL) == 0);
    void *small[64] = {0}, *large = NULL;
    for (unsigned i = 0; forks < 300; i++) {
        free(small[i % 64]);
        small[i % 64] = malloc(i * 37 % 40000 + 1);
        large = realloc(large, (i % 5 + 1) * MB + i % 4096);
        CHECK(small[i % 64] != NULL && large != NULL);
        if (i % 16 == 0) {
            free(large);
            large = NULL;
        }
    }
    CHECK(!failed, "a fork in the handler or its child failed");
}

TEST("a signal handler that forks in the middle of a fork, with a governor running, hangs neither process") {
    start_governor();
    signal(SIGALRM, fork_in_handler);
    for (int round = 0; round < 100; round++) {
        struct itimerval once = {{0, 0}, {0, 1 + round * 37 % 2000}};
        CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
        CHECK(fork_and_wait(), "a fork or its child failed");
    }
    CHECK(!failed, "a fork in the handler or its child failed");
    sigset_t now;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGTERM) == 0, "SIGTERM is still blocked");
}
