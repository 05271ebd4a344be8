// FLARENA_MEMORY_LIMIT. Without a governor the calls of the program keep it below the limit.
#include "jemalloc.h"
#include "tests.h"

enum { LIMIT_MB = 256, FREED_MB = 90, BLOCK_MB = 165 };

static void restart_with_memory_limit(void) {
    setenv("FLARENA_MEMORY_LIMIT", "256M", 1);
    setenv("MALLOC_CONF", "dirty_decay_ms:-1", 1);
    restart_with("FLARENA_GOVERNOR", "off");
    // The first large blocks make the library read the limit.
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
}

// The free small blocks were released before a block of this size.
static void check_room_for(long block_mb) {
    CHECK(rss_bytes() < (LIMIT_MB - block_mb) * (long)MB, "%ld MB are resident before %ld MB more", rss_bytes() >> 20, block_mb);
}

TEST("without a governor, free memory is released at the allocation that would cross FLARENA_MEMORY_LIMIT") {
    restart_with_memory_limit();
    enum { LARGE = 16 };
    free_most(small_heap(150 * MB));
    long highest = 0;
    for (int i = 0; i < LARGE; i++) { // 128 MB: with the freed memory they are more than the limit
        malloc_touched(8 * MB, 1);
        highest = rss_bytes() > highest ? rss_bytes() : highest;
    }
    CHECK(highest < LIMIT_MB * (long)MB, "%ld MB were resident", highest >> 20);
    CHECK(statistic("governor", "reclaims") > 0, "no reclaim");
    CHECK(statistic("governor", "reclaims") < LARGE, "%lld reclaims", statistic("governor", "reclaims"));
}

static void allocate_one_large_block(void) {
    free_most(small_heap(FREED_MB * MB));
    CHECK(malloc(BLOCK_MB * MB) != NULL);
    check_room_for(BLOCK_MB);
}

TEST("without a governor, free memory is released for one block larger than the room below FLARENA_MEMORY_LIMIT") {
    restart_with_memory_limit();
    allocate_one_large_block();
}

TEST("without a governor, a large block right after another one is compared with FLARENA_MEMORY_LIMIT, too") {
    restart_with_memory_limit();
    enum { FIRST_MB = 80, SECOND_MB = 200 };
    free(malloc(FIRST_MB * MB)); // the first measurement is slow
    free_most(small_heap(FREED_MB * MB));
    // For this block the library measures the distance to the limit, which is large enough.
    free(malloc((FIRST_MB + 2) * MB));
    CHECK(malloc(SECOND_MB * MB) != NULL);
    check_room_for(SECOND_MB);
}

TEST("without a governor, FLARENA_MEMORY_LIMIT holds also after the program had no descriptor for a measurement") {
    restart_with_memory_limit();
    struct rlimit descriptors, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    none = descriptors;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    free(malloc(LIMIT_MB * MB)); // a measurement is due, and fails
    CHECK(setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    allocate_one_large_block();
}

TEST("without a governor, free memory is released for a block that xallocx grows across FLARENA_MEMORY_LIMIT") {
    restart_with_memory_limit();
    if (!mode_is("jemalloc"))
        return;
    // In an arena of its own, where nothing else takes the addresses behind the block.
    unsigned arena;
    size_t length = sizeof arena;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
    const int flags = (int)((arena + 1) << 20); // MALLOCX_ARENA(arena)
    void *block = mallocx(BLOCK_MB * MB, flags);
    CHECK(block != NULL && xallocx(block, 64 * KB, 0, flags) == 64 * KB, "the block does not shrink in place");
    free_most(small_heap(FREED_MB * MB));
    CHECK(xallocx(block, BLOCK_MB * MB, 0, flags) >= BLOCK_MB * MB, "the block does not grow in place");
    check_room_for(BLOCK_MB);
}

static void reallocate_near_limit(void) {
    restart_with_memory_limit();
    for (int i = 0; i < 31; i++) // 248 MB
        malloc_touched(8 * MB, 1);
    char *volatile block = malloc(1000);
    long long before = statistic("governor", "reclaims");
    CHECK(before > 0, "the program is not near the limit");
    sleep_ms(500); // the pause after a release
    for (int i = 0; i < 100000; i++)
        block = realloc(block, i % 2 ? 1000 : 2000);
    CHECK(statistic("governor", "reclaims") == before, "%lld reclaims, then %lld", before, statistic("governor", "reclaims"));
}

TEST("without a governor, small reallocs near FLARENA_MEMORY_LIMIT release nothing") {
    reallocate_near_limit();
}

TEST("without a governor, small reallocs near FLARENA_MEMORY_LIMIT release nothing with FLARENA_SITES=on, too") {
    setenv("FLARENA_SITES", "on", 1);
    reallocate_near_limit();
}
