// a signal for the process reaches the program's thread that waits for it, not a thread of the library
#include "check.h"

static volatile sig_atomic_t ticks;

static void tick(int number) {
    ticks++;
}

int main(void) {
    // Enough memory to start the governor.
    char *held[40];
    for (size_t i = 0; i < COUNT(held); i++)
        held[i] = malloc_touched(3 * MB, 1);
    if (!mode_is("bare"))
        await_governor();
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    for (int i = 0; i < 100; i++) {
        struct timespec second = {1, 0};
        kill(getpid(), SIGUSR1); // kills the process if a thread has it unblocked
        CHECK(sigtimedwait(&usr1, NULL, &second) == SIGUSR1, "the signal was not delivered: %s", strerror(errno));
    }
    // A signal may interrupt malloc and free at any point.
    struct itimerval often = {{0, 500}, {0, 500}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 3000 || ticks < 50; i++) {
        size_t size = i % 10 == 0 ? 3 * MB : 500;
        errno = 0;
        char *block = malloc(size);
        CHECK(block != NULL, "malloc in round %d: %s", i, strerror(errno));
        block[size - 1] = 1;
        errno = EXDEV;
        free(block);
        CHECK(errno == EXDEV, "errno %d after free", errno);
    }
    for (size_t i = 0; i < COUNT(held); i++)
        free(held[i]);
}
