// a block beyond all memory is refused with ENOMEM, as glibc has it from the kernel, and not promised
#include "check.h"

int main(void) {
    FILE *policy = fopen("/proc/sys/vm/overcommit_memory", "re");
    if (policy == NULL || fgetc(policy) == '1')
        SKIP("this system promises any memory (vm.overcommit_memory)");
    fclose(policy);
    void *small = malloc(100), *large = malloc(5 * MB);
    fill(small, 100, 1);
    fill(large, 5 * MB, 2);
    for (size_t size = (size_t)1 << 45; size <= (size_t)1 << 47; size *= 2) {
        REFUSED(size, malloc(size));
        REFUSED(size, calloc(1, size));
        REFUSED(size, calloc(size, 1));
        REFUSED(size, realloc(NULL, size));
        REFUSED(size, realloc(small, size));
        REFUSED(size, realloc(large, size));
        REFUSED(size, reallocarray(small, 1, size));
        REFUSED(size, aligned_alloc(64, size));
        REFUSED(size, memalign(4 * MB, size));
        REFUSED(size, valloc(size));
    }
    CHECK(first_wrong(small, 100, 1) == 100, "a failed realloc changed the small block");
    CHECK(first_wrong(large, 5 * MB, 2) == 5 * MB, "a failed realloc changed the large block");
    free(small);
    free(large);
}
