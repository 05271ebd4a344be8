// a heap of small blocks starts the governor, and its free memory is released when the program is idle
#include "check.h"

// argv[1]: another size than that of small_heap.
int main(int argc, char **argv) {
    void **heap = argc == 1 ? small_heap(150 * MB) : heap_of_blocks(150 * MB, (size_t)atol(argv[1]));
    CHECK(rss_bytes() > 150 * (long)MB, "%ld MB", rss_bytes() >> 20);
    free_most(heap);
    await_governor();
    await_rss_below(60 * MB, 30);
}
