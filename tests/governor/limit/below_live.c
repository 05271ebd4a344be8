// with a limit below the live bytes no allocation fails and the governor makes few reclaims
#include "check.h"

int main(void) {
    void **heap = small_heap(120 * MB);
    for (int i = 0; i < 20; i++)
        free(malloc(8 * MB));
    // The governor starts at a free of the program, so some blocks are freed; most stay.
    free_most(small_heap(20 * MB));
    await_governor();
    await_statistic("governor", "reclaims", 1);
    sleep_ms(5000);
    CHECK(statistic("governor", "reclaims") < 10, "%lld reclaims in 5 s", statistic("governor", "reclaims"));
    CHECK(statistic("governor", "ticks") < 150, "%lld ticks in 5 s", statistic("governor", "ticks"));
    free_most(small_heap(50 * MB));
    return *heap == NULL;
}
