// after a fork parent and child keep their bytes, and blocks of the child request pages of 64 KiB too
#include "folios.h"

int main(void) {
    char *blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = (char *)malloc(5 * MB);
        stamp_pages(blocks[i], 5 * MB, (unsigned)i);
    }
    free(blocks[7]);
    pid_t child = fork();
    CHECK(child >= 0);
    for (int i = 0; i < 7; i++) {
        // Parent and child each write to one page of every 64 KiB, so that the kernel copies single pages.
        for (size_t at = (child == 0) * 4096; at < 5 * MB; at += 64 * KB)
            blocks[i][at] = pattern(at, (unsigned)i);
        CHECK(pages_match(blocks[i], 5 * MB, (unsigned)i), "block %d", i);
        if (i % 2 == 0)
            free(blocks[i]);
    }
    char *joined = (char *)malloc(18 * MB);
    stamp_pages(joined, 18 * MB, 3);
    CHECK(vma_flag(joined, 18 * MB, " hg") == 1 && pages_match(joined, 18 * MB, 3));
    for (int i = 1; i < 7; i += 2)
        CHECK(pages_match(blocks[i], 5 * MB, (unsigned)i), "block %d", i);
    if (child == 0)
        _exit(0);
    CHECK_CHILD(child);
}
