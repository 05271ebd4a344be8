// where the system provides huge pages on request, no block gets MADV_HUGEPAGE, fresh or recycled
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
    if (!mode_is("bare"))
        CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}
