// a limit below the live size fails no allocation and is not chased at full speed
#include "check.h"

int main(void) {
    void **heap = small_heap(120 * MB);
    for (int i = 0; i < 20; i++)
        free(malloc(8 * MB));
    // Frees of the program's are what the governor starts from; give it some and stay large.
    free_most(small_heap(20 * MB));
    await_governor();
    sleep_ms(5000);
    CHECK(statistic("governor", "reclaims") >= 1, "%lld reclaims", statistic("governor", "reclaims"));
    CHECK(statistic("governor", "reclaims") < 10, "%lld reclaims in 5 s", statistic("governor", "reclaims"));
    CHECK(statistic("governor", "ticks") < 150, "%lld ticks in 5 s", statistic("governor", "ticks"));
    free_most(small_heap(50 * MB));
    return *heap == NULL;
}
