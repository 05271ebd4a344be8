// a process ends when a signal handler ends its main thread, or restricts it and exits, while malloc runs
#include "check.h"

static void end_thread(int number) {
    pthread_exit(NULL);
}

static void restrict_process(int number) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    _exit(0);
}

static void allocate(int with_governor, void (*handler)(int), long us) {
    if (with_governor) {
        free(malloc_touched(200 * MB, 1));
        await_governor();
    }
    signal(SIGALRM, handler);
    struct itimerval once = {{0, 0}, {0, us}};
    setitimer(ITIMER_REAL, &once, NULL);
    static void *blocks[200];
    for (unsigned random = 1;; random = random * 1103515245 + 12345) {
        void **block = &blocks[(random >> 8) % COUNT(blocks)];
        free(*block);
        *block = malloc(600 * KB + (random >> 4) % MB);
    }
}

int main(void) {
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        if (child == 0)
            allocate(!mode_is("bare") && round % 6 < 2, round % 2 == 0 ? end_thread : restrict_process,
                     5000 + round * 157);
        int status = await_child(child);
        // Without the library, too, libc may abort when it unwinds the stack of an interrupted malloc.
        int aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        CHECK(status == 0 || aborted, "status %#x in round %d", status, round);
    }
}
