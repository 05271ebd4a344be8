// calloc clears recycled pages, and does not fault in pages that were never touched
#include "check.h"

int main(void) {
    restart_with_slow_decay();
    long long recycled = statistic("recycler", "recycled_bytes_total");
    char *dirty = malloc_touched(64 * MB, 7);
    free(dirty);
    char *clean = calloc(1, 64 * MB);
    CHECK(clean != NULL);
    for (size_t at = 0; at < 64 * MB; at += 512)
        CHECK(clean[at] == 0);
    CHECK(statistic("recycler", "recycled_bytes_total") >= recycled + (long)(64 * MB), "the block is not recycled");
    free(clean);
    malloc_trim(0);

    char *sparse = malloc(256 * MB);
    sparse[0] = 1;
    free(sparse);
    long resident = rss_bytes();
    char *again = calloc(1, 256 * MB);
    CHECK(again[0] == 0 && again[255 * MB] == 0);
    CHECK(rss_bytes() < resident + (long)(16 * MB));
    free(again);
}
