// all bytes of malloc_usable_size can be written and survive realloc; for NULL it returns 0
#include "check.h"

int main(void) {
    CHECK(malloc_usable_size(NULL) == 0, "%zu for NULL", malloc_usable_size(NULL));
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        void *block = malloc(SIZES[i]), *after = malloc(SIZES[i]);
        size_t usable = malloc_usable_size(block);
        CHECK(usable >= SIZES[i] && usable < SIZES[i] + SIZES[i] / 2 + 2 * MB, "%zu of %zu", usable, SIZES[i]);
        fill(after, SIZES[i], 2);
        fill(block, usable, 1);
        CHECK(first_mismatch(after, SIZES[i], 2) == SIZES[i], "usable bytes of a block of %zu reach into the next", SIZES[i]);
        block = realloc(block, usable + 5 * MB);
        CHECK(first_mismatch(block, usable, 1) == usable, "realloc lost usable bytes of %zu", SIZES[i]);
        free(block);
        free(after);
    }
}
