// without a governor, small reallocs near FLARENA_MEMORY_LIMIT release nothing
#include "check.h"

enum { LIVE_MB = 248 };

int main(void) {
    for (int i = 0; i < LIVE_MB / 8; i++)
        malloc_touched(8 * MB, 1);
    char *volatile block = malloc(1000);
    long long before = statistic("governor", "reclaims");
    CHECK(before > 0, "the program is not near the limit");
    sleep_ms(500); // the pause after a release
    for (int i = 0; i < 100000; i++)
        block = realloc(block, i % 2 ? 1000 : 2000);
    CHECK(statistic("governor", "reclaims") == before, "%lld reclaims, then %lld", before, statistic("governor", "reclaims"));
    return 0;
}
