// without a governor, free memory is released at the allocation that would cross FLARENA_MEMORY_LIMIT
#include "check.h"

enum { LIMIT_MB = 256, FREED_MB = 150, LARGE = 16 };

int main(void) {
    // The first large blocks make the library read the limit.
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
    free_most(small_heap(FREED_MB * MB));
    long highest = 0;
    for (int i = 0; i < LARGE; i++) { // 128 MB: with the freed memory they are more than the limit
        malloc_touched(8 * MB, 1);
        highest = rss_bytes() > highest ? rss_bytes() : highest;
    }
    CHECK(highest < LIMIT_MB * (long)MB, "%ld MB were resident", highest >> 20);
    CHECK(statistic("governor", "reclaims") > 0, "no reclaim");
    CHECK(statistic("governor", "reclaims") < LARGE, "%lld reclaims", statistic("governor", "reclaims"));
    return 0;
}
