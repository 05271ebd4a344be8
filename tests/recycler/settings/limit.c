// with a limit below the live bytes no allocation fails, nothing is cached beyond the peak, and the governor stays idle
#include "check.h"

static double cpu_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

int main(void) {
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
    double before = cpu_seconds();
    long long reclaims = statistic("governor", "reclaims");
    sleep_ms(3000);
    CHECK(cpu_seconds() - before < 0.3, "%f s of CPU in 3 s of sleep", cpu_seconds() - before);
    CHECK(statistic("governor", "reclaims") >= 1 && statistic("governor", "reclaims") - reclaims <= 4, "%lld, then %lld reclaims",
          reclaims, statistic("governor", "reclaims"));
    for (size_t i = 0; i < COUNT(kept); i++)
        CHECK(kept[i][3 * MB - 1] == 1, "a block changed");
}
