// near FLARENA_MEMORY_LIMIT free memory is released although the program is busy
#include "check.h"

int main(void) {
    free_most(small_heap(150 * MB));
    time_t end = time(NULL) + 30;
    // The program is not idle, so only the limit can cause the release. It allocates, so the heap stays in use.
    while (time(NULL) < end && rss_bytes() > 60 * (long)MB)
        for (int i = 0; i < 100000; i++) {
            void *volatile block = malloc(50);
            free(block);
        }
    CHECK(rss_bytes() < 60 * (long)MB, "%ld MB resident after half a minute", rss_bytes() >> 20);
    // The reclaim is counted when it has ended, shortly after the pages are released.
    await_statistic("governor", "reclaims", 1);
}
