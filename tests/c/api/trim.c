// Trims.
#include "tests.h"

TEST("flarena_trim and malloc_trim release cached pages and slack; they return 1 then, and 0 if there was nothing") {
    char *kept = malloc(3 * MB);
    fill(kept, 3 * MB, 1);
    flarena_trim();
    long at_start = rss_bytes();
    for (int round = 0; round < 3; round++) {
        char *blocks[20];
        for (size_t i = 0; i < COUNT(blocks); i++)
            blocks[i] = memset(malloc(2 * MB + i), 1, 2 * MB);
        for (size_t i = 0; i < COUNT(blocks); i++)
            free(blocks[i]);
        long before = rss_bytes();
        int first = round % 2 ? malloc_trim(0) : flarena_trim(), second = flarena_trim();
        long released = before - rss_bytes();
        // With the recycler off glibc unmaps blocks of this size at free, so the trim may find no memory.
        CHECK(first == 1 || released < (long)MB, "0, though %ld of %ld bytes were released", released, before);
        CHECK(first == 0 || released > 0, "1, though %ld of %ld bytes were released", released, before);
        CHECK(before - released < at_start + (long)(4 * MB), "%ld bytes more than at the start", before - released - at_start);
        CHECK(statistic("recycler", "cached_bytes") == 0, "the cache is not empty");
        CHECK(statistic("recycler", "slack_bytes") == 0, "the slack is not released");
        CHECK(second == 0, "the second trim in a row returned 1; %ld bytes resident before", before);
    }
    CHECK(first_mismatch(kept, 3 * MB, 1) == 3 * MB, "trim changed a live block");
    free(kept);
}

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

TEST("flarena_trim releases the free small blocks of other threads, in every arena") {
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
