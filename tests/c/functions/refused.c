// every function of the malloc family refuses sizes above PTRDIFF_MAX, above all memory, and products that overflow
#include "check.h"

int main(void) {
    // The first three are larger than all memory. The kernel may grant them if it overcommits always.
    const size_t sizes[] = {(size_t)1 << 45, (size_t)1 << 46, (size_t)1 << 47, (size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1,
                            SIZE_MAX / 2, SIZE_MAX - 2 * MB - 1, SIZE_MAX - 2 * MB, SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX - 1,
                            SIZE_MAX};
    FILE *policy = fopen("/proc/sys/vm/overcommit_memory", "re");
    size_t skipped = policy == NULL || fgetc(policy) == '1' ? 3 : 0;
    void *kept = malloc(100), *large = malloc(5 * MB);
    fill(kept, 100, 1);
    fill(large, 5 * MB, 2);
    for (size_t i = skipped; i < COUNT(sizes); i++) {
        size_t size = sizes[i];
        CHECK_ENOMEM(size, malloc(size));
        CHECK_ENOMEM(size, calloc(1, size));
        CHECK_ENOMEM(size, calloc(size, 1));
        CHECK_ENOMEM(size, realloc(NULL, size));
        CHECK_ENOMEM(size, realloc(kept, size));
        CHECK_ENOMEM(size, realloc(large, size));
        CHECK_ENOMEM(size, reallocarray(kept, 1, size));
        CHECK_ENOMEM(size, aligned_alloc(64, size));
        CHECK_ENOMEM(size, memalign(4096, size));
        CHECK_ENOMEM(size, memalign(4 * MB, size));
        CHECK_ENOMEM(size, valloc(size));
        CHECK_ENOMEM(size, pvalloc(size));
        void *unset = &unset;
        int error = posix_memalign(&unset, 64, size);
        CHECK(error == ENOMEM, "posix_memalign(%zx) = %d", size, error);
    }
    const size_t pairs[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, SIZE_MAX},
                               {(size_t)1 << 32, (size_t)1 << 32}, {((size_t)1 << 33) + 1, (size_t)1 << 31}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        CHECK_ENOMEM(pairs[i][0], calloc(pairs[i][0], pairs[i][1]));
        CHECK_ENOMEM(pairs[i][0], reallocarray(large, pairs[i][0], pairs[i][1]));
    }
    CHECK(first_mismatch(kept, 100, 1) == 100, "a failed realloc changed the small block");
    CHECK(first_mismatch(large, 5 * MB, 2) == 5 * MB, "a failed realloc changed the large block");
    free(kept);
    free(large);
}
