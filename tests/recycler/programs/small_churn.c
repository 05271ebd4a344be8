// A process that never held 64 MB of large blocks gives its cached pages back too
#include "recycler.h"

#define BLOCKS 10

static void churn(size_t bytes)
{
    void *blocks[BLOCKS];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = touched(bytes, 1);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
}

static void await_rss_below(long long bytes)
{
    for (int tenths = 0; tenths < 50; tenths++) {
        if (status_bytes("VmRSS:") < bytes)
            return;
        usleep(100 * 1000);
    }
    CHECK(!"the pages went back within five seconds");
}

int main(void)
{
    churn(2 * MIB); // 20 MB: no governor, so the cache is held small
    await_rss_below(20 * MIB);
    churn(5 * MIB); // 50 MB: the governor ages it
    await_rss_below(12 * MIB);
}
