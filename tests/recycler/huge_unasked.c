// nobody asks for huge pages where the system gives them on request
#include "marks.h"

int main(void) {
    if (!is_left_to_the_program())
        SKIP("here the system's policy for huge pages is another");
    const size_t sizes[] = {2 * MB, 4 * MB, 6 * MB, 8 * MB, 16 * MB, 5 * MB + 1};
    for (int round = 0; round < 4; round++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            char *blocks[4];
            for (size_t i = 0; i < COUNT(blocks); i++) {
                blocks[i] = malloc_touched(sizes[s], 1);
                CHECK(flag_shown(blocks[i], sizes[s], " hg") == 0, "block %zu of %zu bytes, round %d", i, sizes[s], round);
            }
            // A mark of another kind is no wish for huge pages.
            madvise(blocks[1] + MB, PAGE, MADV_DONTFORK);
            for (size_t i = 0; i < COUNT(blocks); i++)
                free(blocks[i]);
        }
    if (!mode_is("bare"))
        CHECK(statistic("recycler", "recycled_bytes_total") > 0, "nothing was recycled");
}
