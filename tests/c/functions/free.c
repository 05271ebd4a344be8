// The functions that free.
#include "tests.h"

extern void cfree(void *block) __attribute__((weak));
extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

TEST("free, cfree, free_sized and free_aligned_sized accept NULL, free blocks of every size, and preserve errno") {
    CHECK(mode_is("bare") || (cfree != NULL && free_sized != NULL && free_aligned_sized != NULL), "missing");
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i <= COUNT(SIZES); i++) {
            size_t size = i < COUNT(SIZES) ? SIZES[i] : 0;
            char *blocks[4];
            for (size_t b = 0; b < COUNT(blocks); b++) {
                blocks[b] = size == 0 ? NULL : b == 3 ? aligned_alloc(64, size) : malloc(size);
                if (size > 0)
                    blocks[b][0] = blocks[b][size - 1] = 1;
            }
            errno = EXDEV;
            free(blocks[0]);
            cfree != NULL ? cfree(blocks[1]) : free(blocks[1]);
            free_sized != NULL ? free_sized(blocks[2], size) : free(blocks[2]);
            free_aligned_sized != NULL ? free_aligned_sized(blocks[3], 64, size) : free(blocks[3]);
            CHECK(errno == EXDEV, "errno %d after the frees of %zu bytes", errno, size);
        }
    size_t live = mallinfo2().uordblks + mallinfo2().hblkhd;
    CHECK(live < before + 4 * MB, "%zu bytes are live, before %zu", live, before);
}

TEST("freed blocks are reused: a GB of blocks of each size, one after the other, leaves less than 128 MB resident") {
    for (size_t i = 0; i < COUNT(SIZES); i++)
        for (size_t passed = 0; passed < 1 * GB; passed += SIZES[i] > 4096 ? SIZES[i] : 4096) {
            char *block = malloc(SIZES[i]);
            CHECK(block != NULL, "malloc(%zu)", SIZES[i]);
            for (size_t at = 0; at < SIZES[i]; at += 64 * KB)
                block[at] = 1;
            free(block);
        }
    CHECK(rss_bytes() < (long)(128 * MB), "%ld bytes resident", rss_bytes());
}
