// sizes that no process can have give NULL and ENOMEM from every function of the family
#include "check.h"

int main(void) {
    const size_t sizes[] = {(size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX / 2, SIZE_MAX - 2 * MB - 1,
                            SIZE_MAX - 2 * MB, SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX - 1, SIZE_MAX};
    void *kept = malloc(100), *large = malloc(5 * MB);
    fill(kept, 100, 1);
    fill(large, 5 * MB, 2);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t size = sizes[i];
        REFUSED(size, malloc(size));
        REFUSED(size, calloc(1, size));
        REFUSED(size, calloc(size, 1));
        REFUSED(size, realloc(NULL, size));
        REFUSED(size, realloc(kept, size));
        REFUSED(size, realloc(large, size));
        REFUSED(size, reallocarray(kept, 1, size));
        REFUSED(size, aligned_alloc(64, size));
        REFUSED(size, memalign(4096, size));
        REFUSED(size, memalign(4 * MB, size));
        REFUSED(size, valloc(size));
        REFUSED(size, pvalloc(size));
        void *unset = &unset;
        int error = posix_memalign(&unset, 64, size);
        CHECK(error == ENOMEM, "posix_memalign(%zx) = %d", size, error);
    }
    CHECK(first_wrong(kept, 100, 1) == 100, "a failed realloc changed the small block");
    CHECK(first_wrong(large, 5 * MB, 2) == 5 * MB, "a failed realloc changed the large block");
    free(kept);
    free(large);
}
