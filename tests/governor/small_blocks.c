// a heap of small blocks starts the governor, and its free memory is released when the program is idle
#include "check.h"

int main(void) {
    void **heap = small_heap(150 * MB);
    CHECK(rss_bytes() > 150 * (long)MB, "%ld MB", rss_bytes() >> 20);
    free_most(heap);
    await_governor();
    await_rss_below(60 * MB, 30);
    return 0;
}
