// a guard region that a program left in its block does not affect the next block there
#include "vma_attributes.h"

int main(void) {
    if (mode_is("bare"))
        SKIP("other allocators keep the attributes of their pages");
    const size_t sizes[] = {3 * MB / 2, 2 * MB, 4 * MB, 9 * MB + 5000};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int place = 0; place < PLACES; place++)
            for (int shrunk = 0; shrunk < 2; shrunk++) {
                char *start, *block = malloc_touched(sizes[s], 1);
                size_t length;
                select_part(block, sizes[s], place, &start, &length);
                if (madvise(start, length, MADV_GUARD_INSTALL) != 0)
                    SKIP("this kernel has no guard regions (MADV_GUARD_INSTALL)");
                sleep_ms(60);
                if (shrunk)
                    block = realloc(block, sizes[s] * 3 / 4);
                free(block);
                check_no_guard(sizes[s]);
            }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}
