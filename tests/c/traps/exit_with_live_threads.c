// if main returns while threads allocate, the process ends with its own status
#include "check.h"

static void *churn(void *unused) {
    for (;;) {
        char *block = malloc(2 * MB + 100);
        block[0] = block[2 * MB] = 1;
        free(block);
        free(malloc(200));
    }
    return unused;
}

int main(void) {
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            pthread_t threads[8];
            start_threads(threads, COUNT(threads), churn);
            usleep((useconds_t)i * 300);
            if (i % 3 == 0)
                _exit(7);
            exit(7);
        }
        int status;
        waitpid(pid, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "run %d: status %x", i, status);
    }
}
