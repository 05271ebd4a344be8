// large blocks have the requested alignment, and free preserves errno
#include "check.h"

int main(void) {
    volatile size_t absurd = (size_t)1 << 60;
    for (size_t align = 16; align <= 64 * MB; align *= 2) {
        void *block = NULL;
        long long served = statistic("recycler", "live_blocks");
        CHECK(posix_memalign(&block, align, 5 * MB) == 0);
        CHECK(((size_t)block & (align - 1)) == 0 && malloc_usable_size(block) >= 5 * MB);
        // Units are aligned to 2 MiB. The backend serves larger alignments.
        CHECK((statistic("recycler", "live_blocks") == served + 1) == (align <= 2 * MB), "alignment %zu", align);
        memset(block, 1, 5 * MB);
        errno = 77;
        free(block);
        CHECK(errno == 77, "errno %d", errno);
    }
    void *page = valloc(3 * MB);
    CHECK(((size_t)page & 4095) == 0);
    free(page);
    errno = 0;
    CHECK(malloc(absurd) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(absurd, absurd) == NULL && errno == ENOMEM);
    char *block = malloc_touched(4 * MB, 3);
    CHECK(realloc(block, absurd) == NULL && errno == ENOMEM);
    CHECK(block[4 * MB - 1] == 3);
    free(block);
}
