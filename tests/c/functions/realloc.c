// The functions that resize.
#include "tests.h"

TEST("realloc keeps the contents between all pairs of sizes") {
    for (size_t from = 0; from < COUNT(SIZES); from++)
        for (size_t to = 0; to < COUNT(SIZES); to++) {
            size_t kept = SIZES[from] < SIZES[to] ? SIZES[from] : SIZES[to];
            unsigned char *block = malloc(SIZES[from]);
            fill(block, SIZES[from], 7);
            block = realloc(block, SIZES[to]);
            CHECK(block != NULL, "realloc from %zu to %zu", SIZES[from], SIZES[to]);
            size_t wrong = first_mismatch(block, kept, 7);
            CHECK(wrong == kept, "byte %zu was lost from %zu to %zu", wrong, SIZES[from], SIZES[to]);
            memset(block, 1, SIZES[to]);
            free(block);
        }
}

TEST("a block that realloc grows in many steps to 100 MB and shrinks again keeps its contents") {
    size_t size = 1;
    unsigned char *block = malloc(size), *neighbour = malloc(3 * MB);
    fill(block, size, 3);
    fill(neighbour, 3 * MB, 4);
    while (size < 100 * MB) {
        size_t next = size + size / 3 + 7;
        block = realloc(block, next);
        CHECK(block != NULL, "realloc to %zu", next);
        for (size_t at = size; at < next; at++)
            block[at] = pattern(at, 3);
        size = next;
    }
    size_t wrong = first_mismatch(block, size, 3);
    CHECK(wrong == size, "byte %zu was lost on the way to %zu", wrong, size);
    while (size > 1) {
        size = size - size / 3 - 1;
        block = realloc(block, size);
        CHECK(block != NULL, "realloc to %zu", size);
        CHECK(block[0] == pattern(0, 3) && block[size - 1] == pattern(size - 1, 3), "an end was lost at %zu", size);
    }
    CHECK(first_mismatch(neighbour, 3 * MB, 4) == 3 * MB, "the neighbour changed");
    free(block);
    free(neighbour);
}

TEST("realloc(p, 0) frees the block and returns NULL, as glibc does; realloc(NULL, n) allocates n bytes") {
    const size_t sizes[] = {1, 100, 64 * KB, 40 * MB};
    // If realloc(p, 0) did not free the block, the loop would hold 600 MB.
    for (int round = 0; round < 15; round++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            char *block = realloc(NULL, sizes[i]);
            CHECK(block != NULL && malloc_usable_size(block) >= sizes[i], "realloc(NULL, %zu) = %p", sizes[i], (void *)block);
            memset(block, 1, sizes[i]);
            CHECK(realloc(block, 0) == NULL, "realloc(p, 0) of %zu bytes is not NULL", sizes[i]);
        }
    CHECK(rss_bytes() < (long)(300 * MB), "%ld bytes resident: realloc(p, 0) does not free", rss_bytes());
}

TEST("reallocarray allocates, resizes and frees a block") {
    char *block = reallocarray(NULL, 10, 10);
    CHECK(block != NULL && malloc_usable_size(block) >= 100, "%p", (void *)block);
    fill(block, 100, 9);
    block = reallocarray(block, 3, 2 * MB);
    CHECK(block != NULL && malloc_usable_size(block) >= 6 * MB, "%p", (void *)block);
    CHECK(first_mismatch(block, 100, 9) == 100, "the block changed");
    CHECK(reallocarray(block, 0, 16) == NULL, "reallocarray(p, 0, n) is not NULL");
}
