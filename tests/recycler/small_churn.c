// A process that never held 64 MB of large blocks gives its cached pages back too
// qemu's user mode is resident itself
#include "check.h"

#define BLOCKS 10

static void churn(size_t bytes) {
    void *blocks[BLOCKS];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = malloc_touched(bytes, 1);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "nothing was cached");
}

int main(void) {
    churn(2 * MB); // 20 MB: no governor, so the cache is held small
    await_rss_below(20 * MB, 5);
    churn(5 * MB); // 50 MB: the governor ages it
    await_rss_below(12 * MB, 5);
    await_empty_cache(5);
}
