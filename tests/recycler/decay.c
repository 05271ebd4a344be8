// an idle process purges its cached pages without a call
#include "check.h"

int main(void) {
    for (int round = 0; round < 20; round++)
        free(malloc_touched(100 * MB, 1));
    // The pages are cached first. Otherwise nothing would be left to purge.
    CHECK(rss_bytes() > (long)(90 * MB), "%ld bytes resident", rss_bytes());
    await_rss_below(24 * MB, 5);
    await_empty_cache(5);
    CHECK(statistic("recycler", "returned_bytes_total") >= (long)(100 * MB));
}
