// if swap fills up while a program hibernates, no byte is lost
#include "hibernate.h"

#define SIZE (256 * MB)

// Uses up the swap as soon as the first pages are written to it.
static void fill_swap(void) {
    char *filler = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(filler != MAP_FAILED, "mmap: %s", strerror(errno));
    touch(filler, SIZE, 1);
    for (int attempt = 0; attempt < 20000 && swapped_mb() < 24; attempt++)
        sleep_ms(2);
    madvise(filler, SIZE, 21 /* MADV_PAGEOUT */);
}

int main(void) {
    uint64_t *block = random_block(SIZE, 7);
    fill_swap();
    sleep_ms(3000);
    CHECK(rss_bytes() > 80 * (long)MB, "%ld MB resident: the swap is too large for this test", rss_bytes() >> 20);
    check_words(block, SIZE, 7);
    return 0;
}
