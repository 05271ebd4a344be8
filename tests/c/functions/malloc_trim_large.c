// malloc_trim releases all memory of freed large blocks
// qemu's user mode keeps a resident table of all pages of a block
#include "check.h"

int main(void) {
    long start = rss_bytes();
    for (int round = 0; round < 3; round++) {
        char *blocks[40];
        for (size_t i = 0; i < COUNT(blocks); i++) {
            size_t size = (i % 8 + 1) * MB + i * 1000;
            blocks[i] = malloc(size);
            memset(blocks[i], 1, size);
        }
        for (size_t i = 0; i < COUNT(blocks); i++)
            free(blocks[i]);
        malloc_trim(0);
        CHECK(rss_bytes() - start < (long)(8 * MB), "%ld bytes resident at the start, %ld now", start, rss_bytes());
    }
}
