// nothing is lost when swap fills up on the way out
#include "hibernate.h"

#define SIZE (256 * MB)

// Takes what is left of the swap as soon as the blocks begin to go.
static void fill_swap(void) {
    char *filler = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(filler != MAP_FAILED, "mmap: %s", strerror(errno));
    touch(filler, SIZE, 1);
    for (int look = 0; look < 20000 && swapped_mb() < 24; look++)
        sleep_ms(2);
    madvise(filler, SIZE, 21 /* MADV_PAGEOUT */);
}

int main(void) {
    uint64_t *block = random_block(SIZE, 7);
    fill_swap();
    sleep_ms(3000);
    CHECK(rss_bytes() > 80 * (long)MB, "%ld MB resident: the swap is not small", rss_bytes() >> 20);
    holds(block, SIZE, 7);
    return 0;
}
