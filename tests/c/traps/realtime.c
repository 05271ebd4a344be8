// realloc in a real-time thread does not spin while a thread of lower priority purges the block's tail
// qemu's user mode has no real-time threads
#include "check.h"
#include <stdatomic.h>

static atomic_int stop;

static void *purge_tails(void *unused) {
    while (atomic_load(&stop) == 0)
        malloc_trim(0);
    return unused;
}

int main(void) {
    static char *blocks[64];
    pthread_t thread;
    cpu_set_t one;
    struct sched_param priority = {.sched_priority = 10};
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity: %d", errno);
    CHECK(pthread_create(&thread, NULL, purge_tails, NULL) == 0, "no thread");
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
        SKIP("this user may not start real-time threads");
    double most = 0;
    for (double end = clock_seconds(CLOCK_MONOTONIC) + 4; clock_seconds(CLOCK_MONOTONIC) < end;) {
        for (size_t i = 0; i < COUNT(blocks); i++) {
            free(blocks[i]);
            blocks[i] = realloc(malloc_touched(3 * MB, 1), 2 * MB + 100 * KB);
        }
        for (size_t i = 0; i < COUNT(blocks); i++) {
            usleep(200);
            double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
            blocks[i] = realloc(blocks[i], 2 * MB + 50 * KB + i % 7 * 3 * PAGE);
            double spent = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
            most = spent > most ? spent : most;
        }
    }
    atomic_store(&stop, 1);
    // A thread that spins does so until the kernel throttles it, after almost a second.
    CHECK(most < 0.3, "a realloc took %.3f s of CPU time", most);
}
