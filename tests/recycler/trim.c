// malloc_trim releases all cached pages and all slack, and returns 1
// qemu's user mode keeps resident tables of all pages
#include "check.h"

int main(void) {
    char *kept = malloc_touched(3 * MB, 1);
    long before = rss_bytes();
    char *block = malloc_touched(300 * MB, 2);
    free(block);
    CHECK(malloc_trim(0) == 1);
    CHECK(rss_bytes() < before + (long)(4 * MB));
    CHECK(statistic("recycler", "cached_bytes") == 0 && statistic("recycler", "slack_bytes") == 0);
    CHECK(kept[3 * MB - 1] == 1);
    free(kept);
}
