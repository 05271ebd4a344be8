// with a limit below the live bytes nothing fails, no cache exceeds the peak, and the governor does little
#include "check.h"

int main(void) {
    void **heap = small_heap(60 * MB);
    char *kept[20], *passing[20];
    for (size_t i = 0; i < COUNT(kept); i++)
        kept[i] = malloc_touched(3 * MB, 1);
    await_governor();
    await_statistic("governor", "near_limit", 1);
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < COUNT(passing); i++)
            passing[i] = malloc_touched((1 + (i + (size_t)round) % 5) * MB, 2);
        for (size_t i = 0; i < COUNT(passing); i++)
            free(passing[i]);
        long long held = statistic("recycler", "live_bytes") + statistic("recycler", "cached_bytes");
        long long peak = statistic("recycler", "peak_live_bytes");
        CHECK(held <= peak, "%lld bytes held, %lld at the peak", held, peak);
    }
    long before = cpu_us();
    long long reclaims = statistic("governor", "reclaims"), ticks = statistic("governor", "ticks");
    sleep_ms(3000);
    CHECK(cpu_us() - before < 300000, "%ld us of CPU in 3 s of sleep", cpu_us() - before);
    CHECK(statistic("governor", "reclaims") >= 1 && statistic("governor", "reclaims") - reclaims <= 4, "%lld, then %lld reclaims",
          reclaims, statistic("governor", "reclaims"));
    CHECK(statistic("governor", "ticks") - ticks < 90, "%lld ticks in 3 s", statistic("governor", "ticks") - ticks);
    for (size_t i = 0; i < COUNT(kept); i++)
        CHECK(kept[i][3 * MB - 1] == 1, "a block changed");
    free_most(heap);
}
