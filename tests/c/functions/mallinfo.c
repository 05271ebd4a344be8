// mallinfo returns the values of mallinfo2, truncated to int
#include "check.h"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

int main(void) {
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
