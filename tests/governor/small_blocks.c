// a heap of small blocks alone gets its governor, and goes back to the system when it is free and idle
#include "check.h"

int main(void) {
    void **heap = small_heap(150 * MB);
    CHECK(rss_bytes() > 150 * (long)MB, "%ld MB", rss_bytes() >> 20);
    free_most(heap);
    await_governor();
    await_rss_below(60 * MB, 30);
    return 0;
}
