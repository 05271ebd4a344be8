// mallinfo and mallinfo2.
#include "tests.h"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static long in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return (long)(info.uordblks + info.hblkhd);
}

TEST("mallinfo returns the values of mallinfo2, truncated to int") {
    void *block = malloc(3 * MB), *small = malloc(10000);
    struct mallinfo narrow = mallinfo();
    struct mallinfo2 wide = mallinfo2();
    CHECK(narrow.uordblks == (int)wide.uordblks, "uordblks %d, %zu", narrow.uordblks, wide.uordblks);
    CHECK(narrow.hblkhd == (int)wide.hblkhd, "hblkhd %d, %zu", narrow.hblkhd, wide.hblkhd);
    CHECK(narrow.arena == (int)wide.arena, "arena %d, %zu", narrow.arena, wide.arena);
    CHECK(narrow.uordblks + narrow.hblkhd >= (int)(3 * MB), "%d + %d bytes in use", narrow.uordblks, narrow.hblkhd);
    free(block);
    free(small);
}

TEST("mallinfo2 counts small and large blocks while they live, and no longer") {
    static void *small[20000], *large[10];
    long start = in_use();
    CHECK(start >= 0 && start < (long)(64 * MB), "%ld bytes in use at the start", start);
    for (size_t i = 0; i < COUNT(small); i++)
        small[i] = malloc(1000);
    long with_small = in_use() - start;
    CHECK(with_small >= (long)(18 * MB) && with_small < (long)(40 * MB), "%ld more for 20 MB of small blocks", with_small);
    for (size_t i = 0; i < COUNT(large); i++)
        large[i] = malloc(8 * MB);
    long with_large = in_use() - start - with_small;
    CHECK(with_large >= (long)(78 * MB) && with_large < (long)(120 * MB), "%ld more for 80 MB of large blocks", with_large);
    for (size_t i = 0; i < COUNT(small); i++)
        free(small[i]);
    for (size_t i = 0; i < COUNT(large); i++)
        free(large[i]);
    long left = in_use() - start;
    CHECK(left < (long)(4 * MB), "%ld more in use after all blocks were freed", left);
    struct mallinfo2 info = mallinfo2();
    CHECK(info.arena + info.hblkhd >= info.uordblks, "arena %zu, mapped %zu, in use %zu", info.arena, info.hblkhd, info.uordblks);
}
