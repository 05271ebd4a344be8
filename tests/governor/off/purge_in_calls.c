// with FLARENA_GOVERNOR=off freed large blocks are purged during the program's calls: most at once, the rest when they are old
#include "check.h"

int main(void) {
    allocate_and_free(10, 20 * MB);
    long long cached = statistic("recycler", "cached_bytes");
    CHECK(cached <= (long long)(16 * MB), "%lld bytes cached after the frees", cached);
    sleep_ms(600);
    // Any call purges old pages; this one is too small to need the cached blocks.
    free(malloc_touched(1 * MB, 1));
    cached = statistic("recycler", "cached_bytes");
    CHECK(cached <= (long long)(2 * MB), "%lld bytes cached after a later call", cached);
    long rss = rss_bytes();
    CHECK(rss < (long)(20 * MB), "%ld bytes resident", rss);
}
