// aligned_alloc aligns, also when the size is no multiple of the alignment
#include "check.h"

int main(void) {
    for (size_t alignment = 1; alignment <= 4 * MB; alignment *= 2)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            void *block = aligned_alloc(alignment, SIZES[i]);
            CHECK(block != NULL && (uintptr_t)block % alignment == 0, "aligned_alloc(%zu, %zu) = %p", alignment, SIZES[i], block);
            memset(block, 1, SIZES[i]);
            free(block);
        }
    // glibc rounds up to a power of two before 2.38 and refuses since.
    const size_t odd[][2] = {{3, 4}, {24, 32}, {4097, 8192}};
    for (size_t i = 0; i < COUNT(odd); i++) {
        errno = 0;
        char *block = aligned_alloc(odd[i][0], 100);
        CHECK(block == NULL ? errno == EINVAL : (uintptr_t)block % odd[i][1] == 0, "aligned_alloc(%zu) = %p, errno %d",
              odd[i][0], (void *)block, errno);
        free(block);
    }
}
