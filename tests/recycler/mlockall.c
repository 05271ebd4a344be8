// after mlockall(MCL_FUTURE) every block is locked, fresh or recycled
#include "vma_attributes.h"

int main(void) {
    const size_t sizes[] = {3 * MB / 2, 2 * MB, 4 * MB, 6 * MB, 9 * MB + 5000};
    char *blocks[4];
    if (mlockall(MCL_FUTURE) != 0 || malloc(32 * MB) == NULL)
        SKIP("this user may not lock memory");
    for (int round = 0; round < 3; round++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            for (size_t i = 0; i < COUNT(blocks); i++)
                blocks[i] = malloc_touched(sizes[s], (char)i);
            blocks[0] = realloc(blocks[0], sizes[s] * 2);
            for (size_t i = 0; i < COUNT(blocks); i++)
                CHECK(vma_flag(blocks[i], sizes[s], " lo") == 1, "block %zu of %zu bytes, round %d", i, sizes[s], round);
            free(blocks[1]);
            free(blocks[3]);
            blocks[1] = malloc_touched(sizes[s] * 2 + 1, 5); // gathered from the pages of these two
            CHECK(vma_flag(blocks[1], sizes[s] * 2 + 1, " lo") == 1, "twice %zu bytes, round %d", sizes[s], round);
            for (size_t i = 0; i < 3; i++)
                free(blocks[i]);
        }
    CHECK(statistic("recycler", "fresh_bytes_total") > 0, "no block came from the recycler");
    char *unlocked = malloc_touched(4 * MB, 1);
    munlock(unlocked, 4 * MB);
    free(unlocked);
    CHECK(vma_flag(malloc_touched(4 * MB, 2), 4 * MB, " lo") == 1, "a block in memory that the program had unlocked");
}
