// a freed large block serves the next one of its size without a fresh page
#include "check.h"

int main(void) {
    char *first = malloc_touched(6 * MB, 1);
    CHECK(statistic("recycler", "live_blocks") == 1);
    free(first);
    long long fresh = statistic("recycler", "fresh_bytes_total");
    char *second = malloc_touched(6 * MB, 2);
    CHECK(second == first);
    CHECK(statistic("recycler", "fresh_bytes_total") == fresh);
    CHECK(statistic("recycler", "recycled_bytes_total") >= (long)(6 * MB));
    free(second);
}
