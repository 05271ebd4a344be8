// Small processes, and small blocks.
#include "tests.h"

TEST("a process gets the governor's thread when it grows, and not before") {
    for (int i = 0; i < 2000; i++) {
        free(malloc(1000));
        free(malloc_touched(2 * MB, 1));
    }
    free_most(small_heap(20 * MB));
    malloc_trim(0);
    sleep_ms(300);
    CHECK(count_threads(NULL) == 1, "%d threads", count_threads(NULL));
    start_governor();
    CHECK(count_threads(NULL) == 2, "%d threads", count_threads(NULL));
}

enum { FREES = 100000 };

// Read calls of this process so far.
static long reads(void) {
    return proc_number("io", "syscr");
}

TEST("a small process that frees one block again and again does not read its resident size each time") {
    if (reads() < 0)
        SKIP("the kernel does not count read calls");
    // The resident size is read at most once a millisecond.
    long before = reads();
    double start = clock_seconds(CLOCK_MONOTONIC);
    for (int call = 0; call < FREES; call++) {
        // Frees of such addresses are the library's sample of the program's frees.
        void *volatile block = aligned_alloc(512 << 10, 200);
        CHECK(block != NULL, "aligned_alloc failed");
        free(block);
    }
    long seen = reads() - before, ms = (long)((clock_seconds(CLOCK_MONOTONIC) - start) * 1000);
    CHECK(seen < FREES / 100 + 2 * ms, "%ld reads in %d frees and %ld ms", seen, FREES, ms);
}

static void check_heap_of(size_t size) {
    void **heap = heap_of_blocks(150 * MB, size);
    CHECK(rss_bytes() > 150 * (long)MB, "%ld MB", rss_bytes() >> 20);
    free_most(heap);
    await_governor();
    await_rss_below(60 * MB, 30);
}

TEST("a heap of small blocks starts the governor, and its free memory is released when the program is idle") {
    check_heap_of(100);
}

TEST("a heap whose blocks begin at addresses of one remainder starts the governor, which releases its free memory") {
    check_heap_of(170); // glibc's
}

TEST("near FLARENA_MEMORY_LIMIT free memory is released although the program is busy") {
    restart_with("FLARENA_MEMORY_LIMIT", "64M");
    free_most(small_heap(150 * MB));
    time_t end = time(NULL) + 30;
    // The program is not idle, so only the limit can cause the release. It allocates, so the heap stays in use.
    while (time(NULL) < end && rss_bytes() > 60 * (long)MB)
        for (int i = 0; i < 100000; i++) {
            void *volatile block = malloc(50);
            free(block);
        }
    CHECK(rss_bytes() < 60 * (long)MB, "%ld MB resident after half a minute", rss_bytes() >> 20);
    // The reclaim is counted when it has ended, shortly after the pages are released.
    await_statistic("governor", "reclaims", 1);
}
