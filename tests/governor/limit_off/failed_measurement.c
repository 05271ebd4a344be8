// without a governor, FLARENA_MEMORY_LIMIT holds also after the program had no descriptor for a measurement
#include "check.h"
#include <sys/resource.h>

enum { LIMIT_MB = 256, FREED_MB = 90, BLOCK_MB = 165 };

int main(void) {
    // The first large blocks make the library read the limit.
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
    struct rlimit descriptors, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    none = descriptors;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    free(malloc(LIMIT_MB * MB)); // a measurement is due, and fails
    CHECK(setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    free_most(small_heap(FREED_MB * MB));
    CHECK(malloc(BLOCK_MB * MB) != NULL);
    CHECK(rss_bytes() < (LIMIT_MB - BLOCK_MB) * (long)MB, "%ld MB are resident before %d MB more", rss_bytes() >> 20, BLOCK_MB);
    return 0;
}
