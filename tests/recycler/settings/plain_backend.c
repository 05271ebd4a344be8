// with FLARENA_RECYCLE=off the recycler serves no block
#include "check.h"

int main(void) {
    free(malloc(1)); // the first block of a process is served before the backend exists
    CHECK(!statistic("recycler", "enabled"), "the recycler is enabled");
    long long fresh = statistic("recycler", "fresh_bytes_total"), live = statistic("recycler", "live_blocks");
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        char *block = malloc_touched(SIZES[i], 1), *zeroed = calloc(1, SIZES[i]);
        block = realloc(block, SIZES[i] * 2);
        CHECK(statistic("recycler", "live_blocks") == live, "the recycler serves a block of %zu", SIZES[i]);
        free(block);
        free(zeroed);
    }
    CHECK(statistic("recycler", "fresh_bytes_total") == fresh && statistic("recycler", "cached_bytes") == 0);
}
