// no function of the malloc family is a cancellation point
#include "check.h"

static volatile int reached;

// Calls that leave the fast path: fresh and recycled large blocks, resizes in place and by moving, the check of the
// governor's threshold, sampled small frees, and trims.
static void *allocate(void *ready) {
    pthread_barrier_wait(ready);
    while (pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL) != 0)
        ;
    for (int round = 0; round < 20; round++) {
        char *block = malloc((size_t)(3 + round) * MB);
        CHECK(block != NULL, "%s", strerror(errno));
        fill(block, 3 * MB, (unsigned)round);
        block = realloc(block, 40 * MB);
        CHECK(block != NULL && first_mismatch(block, 3 * MB, (unsigned)round) == 3 * MB, "moved bytes");
        memset(block, 1, 40 * MB);
        block = realloc(block, 2 * MB);
        CHECK(block != NULL, "%s", strerror(errno));
        free(block);
        char *cleared = calloc(5, MB);
        CHECK(cleared != NULL && cleared[3 * MB] == 0, "%p", (void *)cleared);
        free(cleared);
        malloc_trim(0);
    }
    static void *blocks[4096];
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < COUNT(blocks); i++)
            blocks[i] = aligned_alloc(64 * KB, 4 * KB);
        for (size_t i = 0; i < COUNT(blocks); i++)
            free(blocks[i]);
    }
    reached = 1;
    pthread_testcancel();
    return NULL;
}

int main(void) {
    pthread_barrier_t ready;
    pthread_barrier_init(&ready, NULL, 2);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate, &ready) == 0, "%s", strerror(errno));
    CHECK(pthread_cancel(thread) == 0, "pthread_cancel");
    pthread_barrier_wait(&ready);
    void *result = NULL;
    CHECK(pthread_join(thread, &result) == 0, "pthread_join");
    CHECK(reached, "the thread was cancelled in a function of the malloc family");
    CHECK(result == PTHREAD_CANCELED, "%p", result);
}
