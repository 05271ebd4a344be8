// a signal handler that forks while malloc or free is interrupted hangs neither process
#include "check.h"

static volatile sig_atomic_t forks, failed;

static void on_alarm(int signal) {
    int saved = errno, status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        failed = 1;
    forks++;
    errno = saved;
}

int main(void) {
    alarm(60); // a hang ends in a failure
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGVTALRM, &action, NULL) == 0);
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
