// without a governor, free memory is released for one block that is larger than the room below FLARENA_MEMORY_LIMIT
#include "check.h"

enum { LIMIT_MB = 256, FREED_MB = 90, BLOCK_MB = 165 };

int main(void) {
    // The first large blocks make the library read the limit.
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
    free_most(small_heap(FREED_MB * MB));
    CHECK(malloc(BLOCK_MB * MB) != NULL);
    CHECK(rss_bytes() < (LIMIT_MB - BLOCK_MB) * (long)MB, "%ld MB are resident before %d MB more", rss_bytes() >> 20, BLOCK_MB);
    return 0;
}
