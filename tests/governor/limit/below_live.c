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
    long long reclaims = statistic("governor", "reclaims"), ticks = statistic("governor", "ticks");
    sleep_ms(5000);
    reclaims = statistic("governor", "reclaims") - reclaims;
    ticks = statistic("governor", "ticks") - ticks;
    CHECK(reclaims < 10 && ticks < 150, "%lld reclaims and %lld ticks in 5 s", reclaims, ticks);
    free_most(small_heap(50 * MB));
    return *heap == NULL;
}
