// under a memory limit, pages that were dropped from pages of 64 KiB can be used again
#include "check.h"

// The suite runs this program in a cgroup with a limit of 230 MB, and sets FOLIOS_LIMIT there.
int main(void) {
    if (getenv("FOLIOS_LIMIT") == NULL)
        SKIP("this process may not create a cgroup with a memory limit");
    enum { BLOCKS = 95 };
    char *blocks[BLOCKS];
    allocate_and_free(BLOCKS, 2 * MB);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = (char *)malloc(MB + 33);
        stamp_pages(blocks[i], MB + 33, (unsigned)i);
    }
    // The program drops fifteen of sixteen pages by itself.
    char *sparse = malloc_touched(40 * MB, 3);
    for (size_t at = 0; at < 40 * MB; at += 64 * KB) {
        sparse[at] = pattern(at, 9);
        CHECK(madvise(sparse + at + 4096, 60 * KB, MADV_DONTNEED) == 0);
    }
    // 95 + 2.5 MB are live. If the kernel kept the rest of each split page, 138 MB would be resident: with the next
    // 100 MB more than the limit.
    char *rest = (char *)malloc(100 * MB);
    stamp_pages(rest, 100 * MB, 5);
    for (int i = 0; i < BLOCKS; i++)
        CHECK(pages_match(blocks[i], MB + 33, (unsigned)i), "block %d", i);
    for (size_t at = 0; at < 40 * MB; at += 64 * KB)
        CHECK((unsigned char)sparse[at] == pattern(at, 9) && sparse[at + 4096] == 0);
    CHECK(pages_match(rest, 100 * MB, 5));
}
