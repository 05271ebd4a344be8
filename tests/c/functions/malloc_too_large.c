// sizes that no process can have give NULL and ENOMEM from every function of the family
#include "check.h"

#define FAILS(call)                                                              \
    do {                                                                         \
        errno = 0;                                                               \
        void *block = (call);                                                    \
        CHECK(block == NULL && errno == ENOMEM, #call " = %p, errno %d, size %zx", block, errno, size); \
    } while (0)

int main(void) {
    const size_t sizes[] = {(size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX / 2, SIZE_MAX - 2 * MB - 1,
                            SIZE_MAX - 2 * MB, SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX - 1, SIZE_MAX};
    void *kept = malloc(100), *large = malloc(5 * MB);
    fill(kept, 100, 1);
    fill(large, 5 * MB, 2);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t size = sizes[i];
        FAILS(malloc(size));
        FAILS(calloc(1, size));
        FAILS(calloc(size, 1));
        FAILS(realloc(NULL, size));
        FAILS(realloc(kept, size));
        FAILS(realloc(large, size));
        FAILS(reallocarray(kept, 1, size));
        FAILS(aligned_alloc(64, size));
        FAILS(memalign(4096, size));
        FAILS(memalign(4 * MB, size));
        FAILS(valloc(size));
        FAILS(pvalloc(size));
        void *unset = &unset;
        int error = posix_memalign(&unset, 64, size);
        CHECK(error == ENOMEM, "posix_memalign(%zx) = %d", size, error);
    }
    CHECK(first_wrong(kept, 100, 1) == 100, "a failed realloc changed the small block");
    CHECK(first_wrong(large, 5 * MB, 2) == 5 * MB, "a failed realloc changed the large block");
    free(kept);
    free(large);
}
