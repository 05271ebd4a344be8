// a process that never held 64 MB of large blocks purges its cached pages too
// qemu's user mode adds its own memory to the resident size
#include "check.h"

static void churn(size_t bytes) {
    for (int round = 0; round < 20; round++)
        allocate_and_free(10, bytes);
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}

int main(void) {
    churn(2 * MB); // 20 MB: without a governor the cache stays small
    await_rss_below(20 * MB, 30);
    churn(5 * MB); // 50 MB: the governor purges the cache when it is old
    await_rss_below(12 * MB, 30);
    await_empty_cache(30);
}
