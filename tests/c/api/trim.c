// flarena_trim returns 1 if it released memory and 0 if there was none to release
#include "check.h"
#include "flarena.h"

int main(void) {
    char *kept = malloc(3 * MB);
    fill(kept, 3 * MB, 1);
    flarena_trim();
    for (int round = 0; round < 3; round++) {
        char *blocks[20];
        for (size_t i = 0; i < COUNT(blocks); i++)
            blocks[i] = memset(malloc(2 * MB + i), 1, 2 * MB);
        for (size_t i = 0; i < COUNT(blocks); i++)
            free(blocks[i]);
        long before = rss_bytes();
        int first = flarena_trim(), second = flarena_trim();
        long released = before - rss_bytes();
        // With the recycler off glibc unmaps blocks of this size at free, so the trim may find no memory.
        CHECK(first == 1 || released < (long)MB, "0, though %ld of %ld bytes were released", released, before);
        CHECK(first == 0 || released > 0, "1, though %ld of %ld bytes were released", released, before);
        CHECK(second == 0, "the second trim in a row returned 1; %ld bytes resident before", before);
    }
    CHECK(first_mismatch(kept, 3 * MB, 1) == 3 * MB, "trim changed a live block");
    free(kept);
}
