// where the system provides huge pages on request, no block gets MADV_HUGEPAGE, fresh or recycled
// qemu's user mode ignores advice on huge pages
#include "vma_attributes.h"

int main(void) {
    if (!huge_pages_are_on_request())
        SKIP("this system does not leave huge pages to the program");
    const size_t sizes[] = {2 * MB, 4 * MB, 6 * MB, 8 * MB, 16 * MB, 5 * MB + 1};
    for (int round = 0; round < 4; round++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            char *blocks[4];
            for (size_t i = 0; i < COUNT(blocks); i++) {
                blocks[i] = malloc_touched(sizes[s], 1);
                CHECK(vma_flag(blocks[i], sizes[s], " hg") == 0, "block %zu of %zu bytes, round %d", i, sizes[s], round);
            }
            // Another attribute must not lead to a request for huge pages.
            madvise(blocks[1] + MB, PAGE, MADV_DONTFORK);
            for (size_t i = 0; i < COUNT(blocks); i++)
                free(blocks[i]);
        }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
    CHECK(statistic("recycler", "asks_for_huge_pages") == 0);
    // The test sees the flag when a program sets it.
    char *block = malloc_touched(64 * MB, 1);
    CHECK(madvise(block, 64 * MB, MADV_HUGEPAGE) == 0 && vma_flag(block, 64 * MB, " hg") == 1);
}
