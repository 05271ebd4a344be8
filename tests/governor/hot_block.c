// a small process that frees one block again and again does not read its resident size each time
#include "check.h"

enum { FREES = 200000 };

// Read calls of this process so far.
static long reads(void) {
    return proc_number("io", "syscr");
}

int main(void) {
    if (reads() < 0)
        return 77;
    // The resident size is read at most once a millisecond.
    long before = reads();
    double start = clock_seconds(CLOCK_MONOTONIC);
    for (int call = 0; call < FREES; call++) {
        // Frees of such addresses are the library's sample of the program's frees.
        void *volatile block = aligned_alloc(512 << 10, 200);
        CHECK(block != NULL, "aligned_alloc failed");
        free(block);
    }
    long seen = reads() - before, ms = (long)((clock_seconds(CLOCK_MONOTONIC) - start) * 1000);
    CHECK(seen < FREES / 100 + 2 * ms, "%ld reads in %d frees and %ld ms", seen, FREES, ms);
}
