// an idle process purges its cached pages without a call
#include "check.h"

int main(void) {
    long cached = 0;
    // The pages are cached first. Otherwise nothing would be left to purge. Where the thread waits for a processor, they may
    // be purged before they are counted.
    for (int round = 0; round < 20 || (round < 40 && cached < (long)(90 * MB)); round++) {
        free(malloc_touched(100 * MB, 1));
        cached = rss_bytes();
    }
    CHECK(cached > (long)(90 * MB), "%ld bytes resident", cached);
    await_rss_below(24 * MB, 30);
    await_empty_cache(30);
    CHECK(statistic("recycler", "returned_bytes_total") >= (long)(100 * MB));
}
