// a heap whose blocks all have one size starts the governor, and its free memory is released when the program is idle
#include "check.h"

enum { COUNT = 940000, SIZE = 170 }; // glibc's blocks of this size begin at addresses of one remainder

int main(void) {
    static void *blocks[COUNT];
    for (int index = 0; index < COUNT; index++) {
        blocks[index] = malloc(SIZE);
        memset(blocks[index], 1, SIZE);
    }
    CHECK(rss_bytes() > 150 * (long)MB, "%ld MB", rss_bytes() >> 20);
    for (int index = 0; index < COUNT; index++) // the survivors keep the heap from shrinking by itself
        if (index % 1000 != 0)
            free(blocks[index]);
    await_governor();
    await_rss_below(60 * MB, 30);
    return 0;
}
