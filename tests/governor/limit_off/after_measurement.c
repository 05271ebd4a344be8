// without a governor, a large block right after another one is compared with FLARENA_MEMORY_LIMIT, too
#include "check.h"

enum { LIMIT_MB = 256, FREED_MB = 90, FIRST_MB = 80, BLOCK_MB = 200 };

int main(void) {
    // The first large blocks make the library read the limit.
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
    free(malloc(FIRST_MB * MB)); // the first measurement is slow
    free_most(small_heap(FREED_MB * MB));
    // For this block the library measures the distance to the limit, which is large enough.
    free(malloc((FIRST_MB + 2) * MB));
    CHECK(malloc(BLOCK_MB * MB) != NULL);
    CHECK(rss_bytes() < (LIMIT_MB - BLOCK_MB) * (long)MB, "%ld MB are resident before %d MB more", rss_bytes() >> 20, BLOCK_MB);
    return 0;
}
