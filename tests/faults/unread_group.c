// without a governor, the limit of a control group holds also after the program had no descriptor for its first reading
#include "check.h"

enum { LIMIT_MB = 256, FREED_MB = 90, BLOCK_MB = 165 };

int main(void) {
    struct rlimit descriptors, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    none = descriptors;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    // The first large blocks make the library read the limit, which fails.
    free(malloc_touched(LIMIT_MB / 2 * MB, 1));
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
    CHECK(setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    free_most(small_heap(FREED_MB * MB));
    CHECK(malloc(BLOCK_MB * MB) != NULL);
    CHECK(rss_bytes() < (LIMIT_MB - BLOCK_MB) * (long)MB, "%ld MB are resident before %d MB more", rss_bytes() >> 20, BLOCK_MB);
}
