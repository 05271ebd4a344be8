// malloc_trim returns 1 if it released memory and 0 if there was none to release
#include "check.h"

#define BLOCKS 60000
static char *blocks[BLOCKS];

int main(void) {
    void *first = malloc(100);
    malloc_trim(0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(1500);
            memset(blocks[i], 1, 1500);
        }
        // The live blocks keep the top of the heap in place, so that only trim can release the free ones.
        // They are few, so that most slabs of jemalloc are empty: on arm64 a slab holds 128 blocks.
        for (size_t i = 0; i < BLOCKS; i++)
            if (i % 1000 != 999)
                free(blocks[i]);
        long before = rss_bytes();
        int result = malloc_trim(0), again = malloc_trim(0);
        long after = rss_bytes();
        CHECK(result == 1, "%d with %ld bytes resident before, %ld after", result, before, after);
        CHECK(before - after > (long)(30 * MB), "1, but %ld bytes resident before, %ld after", before, after);
        CHECK(again == 0 || mode_is("bare"), "the second trim in a row returned %d; %ld resident before, %ld after", again, before, after);
        for (size_t i = 999; i < BLOCKS; i += 1000)
            free(blocks[i]);
        malloc_trim(0);
    }
    free(first);
}
