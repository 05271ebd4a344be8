// an allocation larger than all memory fails with ENOMEM, unless the kernel overcommits always
#include "check.h"

int main(void) {
    FILE *policy = fopen("/proc/sys/vm/overcommit_memory", "re");
    if (policy == NULL || fgetc(policy) == '1')
        SKIP("this system overcommits always (vm.overcommit_memory)");
    fclose(policy);
    void *small = malloc(100), *large = malloc(5 * MB);
    fill(small, 100, 1);
    fill(large, 5 * MB, 2);
    for (size_t size = (size_t)1 << 45; size <= (size_t)1 << 47; size *= 2) {
        CHECK_ENOMEM(size, malloc(size));
        CHECK_ENOMEM(size, calloc(1, size));
        CHECK_ENOMEM(size, calloc(size, 1));
        CHECK_ENOMEM(size, realloc(NULL, size));
        CHECK_ENOMEM(size, realloc(small, size));
        CHECK_ENOMEM(size, realloc(large, size));
        CHECK_ENOMEM(size, reallocarray(small, 1, size));
        CHECK_ENOMEM(size, aligned_alloc(64, size));
        CHECK_ENOMEM(size, memalign(4 * MB, size));
        CHECK_ENOMEM(size, valloc(size));
    }
    CHECK(first_mismatch(small, 100, 1) == 100, "a failed realloc changed the small block");
    CHECK(first_mismatch(large, 5 * MB, 2) == 5 * MB, "a failed realloc changed the large block");
    free(small);
    free(large);
}
