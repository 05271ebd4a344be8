// a signal handler that forks in the middle of a fork, with a governor running, hangs neither process
#include "check.h"

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

static void on_alarm(int signal) {
    int saved = errno;
    failed |= !fork_and_wait();
    forks++;
    errno = saved;
}

int main(void) {
    start_governor();
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    for (int round = 0; round < 100; round++) {
        struct itimerval once = {{0, 0}, {0, 1 + round * 37 % 2000}};
        CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
        CHECK(fork_and_wait(), "a fork or its child failed");
    }
    CHECK(!failed, "a fork in the handler or its child failed");
    sigset_t now;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGTERM) == 0, "SIGTERM is still blocked");
}
