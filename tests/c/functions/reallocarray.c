// reallocarray resizes a block; if the product overflows it returns NULL and ENOMEM and keeps the block
#include "check.h"

int main(void) {
    char *block = reallocarray(NULL, 10, 10);
    CHECK(block != NULL && malloc_usable_size(block) >= 100, "%p", (void *)block);
    fill(block, 100, 9);
    block = reallocarray(block, 3, 2 * MB);
    CHECK(block != NULL && malloc_usable_size(block) >= 6 * MB, "%p", (void *)block);
    fill(block, 6 * MB, 9);
    const size_t pairs[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {(size_t)1 << 32, (size_t)1 << 32}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        errno = 0;
        void *none = reallocarray(block, pairs[i][0], pairs[i][1]);
        CHECK(none == NULL && errno == ENOMEM, "reallocarray(%zx, %zx) = %p, errno %d", pairs[i][0], pairs[i][1], none, errno);
    }
    CHECK(first_mismatch(block, 6 * MB, 9) == 6 * MB, "the block changed");
    CHECK(reallocarray(block, 0, 16) == NULL, "reallocarray(p, 0, n) is not NULL");
}
