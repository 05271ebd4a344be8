// under a memory limit what was dropped out of pages of 64 KiB can be used again
#include "folios.h"

// The suite runs it in a group of 230 MB; FOLIOS_LIMIT says so.
int main(void) {
    if (getenv("FOLIOS_LIMIT") == NULL)
        SKIP("no group with a memory limit can be made here");
    enum { BLOCKS = 95 };
    char *full[BLOCKS], *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        full[i] = malloc_touched(2 * MB, 1);
    for (int i = 0; i < BLOCKS; i++)
        free(full[i]);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = (char *)malloc(MB + 33);
        stamp_pages(blocks[i], MB + 33, (unsigned)i);
    }
    // The program's own doing: one page of sixteen stays.
    char *sparse = malloc_touched(40 * MB, 3);
    for (size_t at = 0; at < 40 * MB; at += 64 * KB) {
        sparse[at] = pattern(at, 9);
        CHECK(madvise(sparse + at + 4096, 60 * KB, MADV_DONTNEED) == 0);
    }
    // 95 + 2.5 MB are live; with the rest of each page that was cut it would be 138 MB, too much beside 100.
    char *rest = (char *)malloc(100 * MB);
    stamp_pages(rest, 100 * MB, 5);
    for (int i = 0; i < BLOCKS; i++)
        CHECK(pages_match(blocks[i], MB + 33, (unsigned)i), "block %d", i);
    for (size_t at = 0; at < 40 * MB; at += 64 * KB)
        CHECK((unsigned char)sparse[at] == pattern(at, 9) && sparse[at + 4096] == 0);
    CHECK(pages_match(rest, 100 * MB, 5));
}
