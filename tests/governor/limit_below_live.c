// a limit below the live size fails no allocation and is not chased at full speed
#include "governor.h"

int main(void) {
    void **heap = small_heap(120 * MB);
    for (int i = 0; i < 20; i++)
        free(malloc(8 * MB));
    // Frees of the program's are what the governor starts from; give it some and stay large.
    free_most(small_heap(20 * MB));
    await_governor();
    sleep_ms(5000);
    CHECK(statistic("reclaims") >= 1, "%ld reclaims", statistic("reclaims"));
    CHECK(statistic("reclaims") < 10, "%ld reclaims in 5 s", statistic("reclaims"));
    CHECK(statistic("ticks") < 150, "%ld ticks in 5 s", statistic("ticks"));
    free_most(small_heap(50 * MB));
    return *heap == NULL;
}
