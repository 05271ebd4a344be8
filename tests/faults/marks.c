// writes markers while the system refuses; prints how many were reported written, a crash is for the caller to see
//
//   marks COUNT: blocks of all sizes are touched, resized and checked between two markers
#include "check.h"
#include "flarena.h"
#include <sys/prctl.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 20, written = 0;
    prctl(0x666c6172, 0, 0, 0, 0); // fail: count from here
    for (int i = 0; i < count; i++) {
        size_t size = SIZES[(size_t)i % COUNT(SIZES)];
        unsigned char *block = calloc(1, size), *grown;
        CHECK(block == NULL || first_nonzero(block, size) == size, "calloc(%zu) is not zero", size);
        if (block != NULL) {
            stamp_pages(block, size, (unsigned)i);
            grown = realloc(block, size * 2);
            block = grown != NULL ? grown : block;
            CHECK(pages_hold(block, size, (unsigned)i), "realloc from %zu lost bytes", size);
        }
        written += flarena_mark("fault", "site-1", i) == 0;
        free(block);
        if (i % 8 == 7)
            flarena_trim();
    }
    // Not by stdio, and not by a write that fail may refuse.
    return written;
}
