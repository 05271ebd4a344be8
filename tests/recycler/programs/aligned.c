// Large blocks have every alignment that was asked for, and errno survives free
#include "recycler.h"
#include <malloc.h>

int main(void)
{
    for (size_t align = 16; align <= 64 * MIB; align *= 2) {
        void *block = NULL;
        CHECK(posix_memalign(&block, align, 5 * MIB) == 0);
        CHECK(((size_t)block & (align - 1)) == 0 && malloc_usable_size(block) >= 5 * MIB);
        memset(block, 1, 5 * MIB);
        errno = 77;
        free(block);
        CHECK(errno == 77);
    }
    void *page = valloc(3 * MIB);
    CHECK(((size_t)page & 4095) == 0);
    free(page);
    errno = 0;
    CHECK(malloc((size_t)1 << 60) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc((size_t)1 << 40, (size_t)1 << 40) == NULL && errno == ENOMEM);
    char *block = touched(4 * MIB, 3);
    CHECK(realloc(block, (size_t)1 << 60) == NULL && errno == ENOMEM);
    CHECK(block[4 * MIB - 1] == 3);
    free(block);
}
