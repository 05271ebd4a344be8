// flarena_trim releases the free small blocks of other threads, in every arena
#include "check.h"
#include "flarena.h"

static void *fill_and_free(void *barrier) {
    void **blocks = malloc(40000 * sizeof *blocks);
    for (int i = 0; i < 40000; i++)
        blocks[i] = memset(malloc(500), 1, 500);
    pthread_barrier_wait(barrier); // else, on one core, the next thread would reuse the blocks of one that has freed its own
    for (int i = 0; i < 40000; i++)
        if (i % 1000 != 999) // some stay, so that glibc cannot delete a heap as a whole
            free(blocks[i]);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return blocks;
}

int main(void) {
    pthread_barrier_t barrier;
    pthread_t threads[4];
    pthread_barrier_init(&barrier, NULL, COUNT(threads) + 1);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_create(&threads[i], NULL, fill_and_free, &barrier);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    long before = rss_bytes();
    int result = flarena_trim();
    long after = rss_bytes();
    CHECK(result == 1 && before - after > (long)(40 * MB), "%d: %ld bytes resident before, %ld after", result, before, after);
    pthread_barrier_wait(&barrier);
    join_threads(threads, COUNT(threads));
}
