// posix_memalign aligns blocks of every size to every power of two from 8 bytes to 8 MB
#include "check.h"

int main(void) {
    for (size_t alignment = sizeof(void *); alignment <= 8 * MB; alignment *= 2)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            void *block = NULL;
            int error = posix_memalign(&block, alignment, SIZES[i]);
            CHECK(error == 0, "posix_memalign(%zu, %zu) = %d", alignment, SIZES[i], error);
            CHECK((uintptr_t)block % alignment == 0, "posix_memalign(%zu, %zu): %p", alignment, SIZES[i], block);
            CHECK(malloc_usable_size(block) >= SIZES[i], "usable %zu of %zu", malloc_usable_size(block), SIZES[i]);
            memset(block, 1, SIZES[i]);
            free(block);
        }
}
