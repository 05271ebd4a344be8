// an attribute whose mapping covers two neighbouring blocks exactly is detected at free
// qemu's user mode has too few addresses for the library's address window
#include "check.h"

#define BLOCKS 16

static int by_address(const void *a, const void *b) {
    return *(char *const *)a < *(char *const *)b ? -1 : 1;
}

// Both blocks fill their units, and the mapping begins and ends with them, so that no VMA boundary lies inside a block.
static void protect_and_reuse(size_t size, int round) {
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc_touched(size, 1);
    qsort(blocks, BLOCKS, sizeof *blocks, by_address);
    int pair = 0;
    while (pair < BLOCKS - 1 && blocks[pair] + size != blocks[pair + 1])
        pair++;
    CHECK(pair < BLOCKS - 1, "no two of the blocks are neighbours");
    CHECK(mprotect(blocks[pair], 2 * size, PROT_READ) == 0, "mprotect: %s", strerror(errno));
    long long reset = statistic("recycler", "attributes_reset"), unmapped = statistic("recycler", "attributes_altered");
    int right_first = round % 2;
    free(blocks[pair + right_first]);
    free(blocks[pair + !right_first]);
    blocks[pair] = blocks[pair + 1] = NULL;
    reset = statistic("recycler", "attributes_reset") - reset;
    unmapped = statistic("recycler", "attributes_altered") - unmapped;
    CHECK(reset + unmapped >= 2, "%lld blocks reset, %lld unmapped", reset, unmapped);
    blocks[pair] = malloc_touched(size, 2); // crashes if the pages are still protected
    blocks[pair + 1] = malloc_touched(size, 2);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

int main(void) {
    for (int round = 0; round < 10; round++) {
        protect_and_reuse(4 * MB, round);
        protect_and_reuse(2 * MB, round);
        protect_and_reuse(8 * MB, round);
    }
}
