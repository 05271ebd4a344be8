// malloc_trim gives 1 only when memory went back to the system, and 0 when there is nothing
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
        // What stays keeps the heap's top in place: only trim can give the rest back.
        // Few enough that most of jemalloc's slabs are free, which on arm64 hold 128 of them.
        for (size_t i = 0; i < BLOCKS; i++)
            if (i % 1000 != 999)
                free(blocks[i]);
        long before = rss_bytes();
        int result = malloc_trim(0), again = malloc_trim(0);
        long after = rss_bytes();
        CHECK(result == 1, "%d with %ld bytes resident before, %ld after", result, before, after);
        CHECK(before - after > (long)(30 * MB), "1, but %ld bytes resident before, %ld after", before, after);
        CHECK(again == 0 || mode_is("bare"), "the second trim in a row gave %d; %ld resident before, %ld after", again, before, after);
        for (size_t i = 999; i < BLOCKS; i += 1000)
            free(blocks[i]);
        malloc_trim(0);
    }
    free(first);
}
