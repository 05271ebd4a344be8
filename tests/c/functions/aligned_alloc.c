// aligned_alloc accepts a size that is no multiple of the alignment, and rounds other alignments up to a power of two
#include "check.h"

int main(void) {
    for (size_t alignment = 1; alignment <= 4 * MB; alignment *= 2)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            void *block = aligned_alloc(alignment, SIZES[i]);
            CHECK(block != NULL && (uintptr_t)block % alignment == 0, "aligned_alloc(%zu, %zu) = %p", alignment, SIZES[i], block);
            memset(block, 1, SIZES[i]);
            free(block);
        }
    // Before 2.38 glibc rounds up to a power of two; later versions refuse with EINVAL. The library always rounds up.
    const size_t odd[][2] = {{0, 1}, {3, 4}, {24, 32}, {4097, 8192}, {3 * MB, 4 * MB}};
    for (size_t i = 0; i < COUNT(odd); i++)
        for (size_t size = 100; size <= 10 * MB; size *= 10) {
            errno = 0;
            char *block = aligned_alloc(odd[i][0], size);
            if (block == NULL && mode_is("bare") && errno == EINVAL)
                continue;
            CHECK(block != NULL && (uintptr_t)block % odd[i][1] == 0, "aligned_alloc(%zu, %zu) = %p, errno %d",
                  odd[i][0], size, (void *)block, errno);
            memset(block, 1, size);
            free(block);
        }
    errno = 0;
    char *none = aligned_alloc(SIZE_MAX, 100);
    CHECK(none == NULL && errno == EINVAL, "aligned_alloc(SIZE_MAX) = %p, errno %d", (void *)none, errno);
}
