// a guard region that a program left in a block that lived a second does not affect the next block there
#include "vma_attributes.h"

int main(void) {
    const size_t sizes[] = {3 * MB / 2, 2 * MB, 4 * MB, 9 * MB + 5000};
    for (int shrunk = 0; shrunk < 2; shrunk++) {
        char *blocks[COUNT(sizes)][PLACES];
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int place = 0; place < PLACES; place++) {
                char *start;
                size_t length;
                blocks[s][place] = malloc_touched(sizes[s], 1);
                select_part(blocks[s][place], sizes[s], place, &start, &length);
                if (madvise(start, length, MADV_GUARD_INSTALL) != 0)
                    SKIP("this kernel has no guard regions (MADV_GUARD_INSTALL)");
            }
        sleep_ms(GUARD_SEARCH_AGE_MS);
        for (size_t s = 0; s < COUNT(sizes); s++) {
            malloc_trim(0); // only the blocks of this size are reused
            for (int place = 0; place < PLACES; place++) {
                if (shrunk)
                    blocks[s][place] = realloc(blocks[s][place], sizes[s] * 3 / 4);
                free(blocks[s][place]);
            }
            check_no_guard(sizes[s]);
        }
    }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}
