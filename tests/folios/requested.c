// where the system provides pages of 64 KiB on request, every large block requests them: fresh, recycled, gathered, resized
#include "folios.h"

int main(void) {
    const size_t sizes[] = {MB + 33, 2 * MB, 3 * MB - 5, 8 * MB, 8 * MB + 1, 33 * MB};
    long before = minor_faults();
    for (int round = 0; round < 3; round++) {
        char *blocks[COUNT(sizes)][3];
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = 0; i < 3; i++) {
                blocks[s][i] = i == 1 ? (char *)calloc(1, sizes[s]) : (char *)malloc(sizes[s]);
                stamp_pages(blocks[s][i], sizes[s], (unsigned)i);
                CHECK(vma_flag(blocks[s][i], sizes[s], " hg") == 1, "block %d of %zu bytes, round %d", i, sizes[s], round);
            }
        char *grown = (char *)realloc(blocks[3][0], 50 * MB);
        stamp_pages(grown + 8 * MB, 42 * MB, 9);
        CHECK(vma_flag(grown, 50 * MB, " hg") == 1 && pages_match(grown, 8 * MB, 0));
        free(grown);
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = s == 3; i < 3; i++)
                free(blocks[s][i]);
        char *gathered = malloc_touched(120 * MB, 1);
        CHECK(vma_flag(gathered, 120 * MB, " hg") == 1);
        free(gathered);
    }
    CHECK(statistic("recycler", "moved_bytes_total") > 0, "no page was moved");
    CHECK(statistic("recycler", "asks_for_huge_pages") == 1);
    // Pages of 4 KiB would cost one fault for each page.
    long pages = (long)(statistic("recycler", "fresh_bytes_total") / 4096);
    CHECK(minor_faults() - before < pages / 2, "%ld faults for %ld pages", minor_faults() - before, pages);
}
