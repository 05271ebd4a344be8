// a block a little larger than 1 MiB costs only its pages, not 2 MiB
#include "check.h"

int main(void) {
    char *blocks[100];
    long before = rss_bytes();
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc_touched(MB + MB / 10, 1);
    CHECK(statistic("recycler", "live_blocks") == 100);
    CHECK(rss_bytes() < before + (long)(118 * MB));
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}
