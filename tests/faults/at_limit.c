// In a control group with a limit of 256 MB.
#include "tests.h"

enum { LIMIT_MB = 256, BLOCK_MB = 24, REFUSED = 3 };

// Blocks of so many megabytes until one is refused.
static void fill_group(size_t megabytes) {
    for (;;) {
        char *block = (char *)malloc(megabytes * MB);
        if (block == NULL)
            exit(errno == ENOMEM ? REFUSED : 1);
        touch(block, megabytes * MB, 1);
    }
}

TEST("a large allocation that cannot fit below the limit of its group fails with FLARENA_AT_LIMIT=fail") {
    if (getenv("FILL_MB") != NULL)
        fill_group(strtoul(getenv("FILL_MB"), NULL, 10));
    char *grown = malloc_touched(BLOCK_MB * MB, 7);
    void **small = small_heap(LIMIT_MB / 4 * MB);
    char *held[LIMIT_MB / BLOCK_MB];
    size_t count = 0;
    while ((held[count] = (char *)malloc(BLOCK_MB * MB)) != NULL)
        touch(held[count++], BLOCK_MB * MB, 1);
    CHECK(errno == ENOMEM && count >= 4, "%zu blocks, %s", count, strerror(errno));
    void *block = NULL;
    CHECK(posix_memalign(&block, 4096, BLOCK_MB * MB) == ENOMEM && block == NULL);
    errno = 0;
    CHECK(realloc(grown, 3 * BLOCK_MB * MB) == NULL && errno == ENOMEM);
    CHECK(grown[0] == 7 && grown[BLOCK_MB * MB - 1] == 7, "the old block stays");
    // Its pages stay untouched.
    CHECK(calloc(1, LIMIT_MB * MB) != NULL, "calloc is never refused");
    // Of the small heap, pages are free but not yet returned.
    free_most(small);
    CHECK((block = malloc(BLOCK_MB * MB)) != NULL, "a release makes room: %s", strerror(errno));
    touch(block, BLOCK_MB * MB, 1);
    free(held[--count]);
    CHECK((held[count] = (char *)malloc(BLOCK_MB * MB)) != NULL, "freed blocks make room: %s", strerror(errno));
    touch(held[count], BLOCK_MB * MB, 1);
}

TEST("without a governor, a group's limit holds after the program had no descriptor for its first reading") {
    enum { FREED_MB = 90, BLOCK_MB = 165 };
    struct rlimit descriptors, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    none = descriptors;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    // The first large blocks make the library read the limit, which fails.
    free(malloc_touched(LIMIT_MB / 2 * MB, 1));
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
    CHECK(setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    free_most(small_heap(FREED_MB * MB));
    CHECK(malloc(BLOCK_MB * MB) != NULL);
    CHECK(rss_bytes() < (LIMIT_MB - BLOCK_MB) * (long)MB, "%ld MB before %d MB more", rss_bytes() >> 20, BLOCK_MB);
}
