// without a governor, free memory is released for a block that xallocx grows across FLARENA_MEMORY_LIMIT
#include "check.h"

enum { LIMIT_MB = 256, FREED_MB = 90, BLOCK_MB = 165 };

int main(void) {
    if (!mode_is("jemalloc"))
        return 0;
    int (*mallctl)(const char *, void *, size_t *, void *, size_t);
    void *(*mallocx)(size_t, int);
    size_t (*xallocx)(void *, size_t, size_t, int);
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&mallocx = dlsym(RTLD_DEFAULT, "mallocx");
    *(void **)&xallocx = dlsym(RTLD_DEFAULT, "xallocx");
    // The first large blocks make the library read the limit.
    for (int i = 0; i < 8; i++)
        free(malloc_touched(8 * MB, 1));
    // In an arena of its own, where nothing else takes the addresses behind the block.
    unsigned arena;
    size_t length = sizeof arena;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
    const int flags = (int)((arena + 1) << 20); // MALLOCX_ARENA(arena)
    void *block = mallocx(BLOCK_MB * MB, flags);
    CHECK(block != NULL && xallocx(block, 64 * KB, 0, flags) == 64 * KB, "the block does not shrink in place");
    free_most(small_heap(FREED_MB * MB));
    CHECK(xallocx(block, BLOCK_MB * MB, 0, flags) >= BLOCK_MB * MB, "the block does not grow in place");
    CHECK(rss_bytes() < (LIMIT_MB - BLOCK_MB) * (long)MB, "%ld MB are resident before %d MB more", rss_bytes() >> 20, BLOCK_MB);
    return 0;
}
