// Blocks and mappings at the limits of the kernel.
#include "tests.h"

TEST("blocks of 5 and 12 GB of which few pages are touched can be allocated, grown, shrunk and freed") {
    // qemu's user mode keeps a resident table of all pages of a block
    for (int round = 0; round < 3; round++) {
        char *block = malloc(5 * GB);
        if (block == NULL)
            SKIP("this machine does not grant 5 GB of address space");
        block[0] = 1;
        block[5 * GB - 1] = 2;
        char *grown = realloc(block, 12 * GB);
        if (grown == NULL)
            SKIP("this machine does not grant 12 GB of address space");
        CHECK(grown[0] == 1 && grown[5 * GB - 1] == 2, "an end was lost");
        grown[12 * GB - 1] = 3;
        char *shrunk = realloc(grown, 3 * MB);
        CHECK(shrunk != NULL && shrunk[0] == 1, "the shrunk block lost its first byte");
        CHECK(rss_bytes() < (long)(64 * MB), "%ld bytes resident", rss_bytes());
        free(shrunk);
    }
}

// Allocates, resizes and frees while no mapping can be split or made.
static void churn(void) {
    static struct {
        unsigned char *start;
        size_t size;
    } blocks[12];
    unsigned state = 1;
    for (int i = 0; i < 150; i++) {
        state = state * 1664525 + 1013904223;
        size_t slot = (state >> 8) % COUNT(blocks), size = 1 * MB + (state >> 10) % (7 * MB);
        unsigned seed = (unsigned)slot;
        if (blocks[slot].start != NULL) {
            size_t kept = blocks[slot].size < size ? blocks[slot].size : size;
            unsigned char *moved = i % 3 == 0 ? realloc(blocks[slot].start, size) : NULL;
            if (moved != NULL) {
                CHECK(pages_match(moved, kept, seed), "realloc lost bytes in round %d", i);
                blocks[slot].start = moved;
                blocks[slot].size = size;
                stamp_pages(moved, size, seed);
                continue;
            }
            CHECK(pages_match(blocks[slot].start, blocks[slot].size, seed), "bytes were lost in round %d", i);
            free(blocks[slot].start);
            blocks[slot].start = NULL;
        } else {
            blocks[slot].start = i % 2 ? malloc(size) : calloc(1, size);
            blocks[slot].size = size;
            if (blocks[slot].start == NULL)
                CHECK(errno == ENOMEM, "errno %d", errno);
            else
                stamp_pages(blocks[slot].start, size, seed);
        }
    }
    for (size_t slot = 0; slot < COUNT(blocks); slot++) {
        free(blocks[slot].start);
        blocks[slot].start = NULL;
    }
}

TEST("when the kernel allows no more mappings, large allocations may fail with ENOMEM but no byte is lost") {
    // qemu's user mode needs more mappings for each of these, and hangs when there are none left
    size_t allowed = max_mappings();
    if (allowed > 300000)
        SKIP("this machine allows too many mappings to use them up");
    churn();
    size_t length = (allowed + 1000) * 2 * PAGE;
    char *region = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(region != MAP_FAILED, "mmap: %s", strerror(errno));
    size_t at = 0;
    while (at < length && mprotect(region + at, PAGE, PROT_READ) == 0)
        at += 2 * PAGE;
    CHECK(at < length && errno == ENOMEM, "%zu mappings were made without a refusal", at / PAGE);
    churn();
    munmap(region, 16 * PAGE); // makes a few mappings available
    churn();
    munmap(region, length);
    churn();
    malloc_trim(0);
    CHECK(rss_bytes() < (long)(48 * MB), "%ld bytes resident after all blocks were freed", rss_bytes());
}
