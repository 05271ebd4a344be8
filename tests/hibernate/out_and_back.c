// the large blocks of an idle program go to swap, and come back when it works, before it touches them
#include "hibernate.h"

#define SIZE (256 * MB)

static long thread_major_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_majflt;
}

int main(void) {
    uint64_t *block = random_block(SIZE, 7);
    await_swapped(250);
    CHECK(rss_bytes() < 80 * (long)MB, "%ld MB resident", rss_bytes() >> 20);
    await_hibernated(240);
    long faults = thread_major_faults();
    time_t end = time(NULL) + 60;
    for (volatile long count = 0; (swapped_mb() > 8 || hibernated_mb() > 0) && time(NULL) < end;)
        count = count + 1;
    CHECK(swapped_mb() <= 8, "%ld MB are still in swap", swapped_mb());
    CHECK(thread_major_faults() - faults < 1000, "%ld major faults of the program's thread", thread_major_faults() - faults);
    CHECK(rss_bytes() > 250 * (long)MB, "%ld MB resident", rss_bytes() >> 20);
    check_words(block, SIZE, 7);
    CHECK(hibernated_mb() == 0, "%ld MB hibernated", hibernated_mb());
    return 0;
}
