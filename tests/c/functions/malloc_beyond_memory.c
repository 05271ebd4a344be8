// a block beyond all memory is refused with ENOMEM, as glibc has it from the kernel, and not promised
#include "check.h"

#define FAILS(call)                                                                              \
    do {                                                                                         \
        errno = 0;                                                                               \
        void *block = (call);                                                                    \
        CHECK(block == NULL && errno == ENOMEM, #call " = %p, errno %d, size %zx", block, errno, size); \
    } while (0)

int main(void) {
    FILE *policy = fopen("/proc/sys/vm/overcommit_memory", "re");
    if (policy == NULL || fgetc(policy) == '1')
        SKIP("this system promises any memory (vm.overcommit_memory)");
    fclose(policy);
    void *small = malloc(100), *large = malloc(5 * MB);
    fill(small, 100, 1);
    fill(large, 5 * MB, 2);
    for (size_t size = (size_t)1 << 45; size <= (size_t)1 << 47; size *= 2) {
        FAILS(malloc(size));
        FAILS(calloc(1, size));
        FAILS(calloc(size, 1));
        FAILS(realloc(NULL, size));
        FAILS(realloc(small, size));
        FAILS(realloc(large, size));
        FAILS(reallocarray(small, 1, size));
        FAILS(aligned_alloc(64, size));
        FAILS(memalign(4 * MB, size));
        FAILS(valloc(size));
    }
    CHECK(first_wrong(small, 100, 1) == 100, "a failed realloc changed the small block");
    CHECK(first_wrong(large, 5 * MB, 2) == 5 * MB, "a failed realloc changed the large block");
    free(small);
    free(large);
}
