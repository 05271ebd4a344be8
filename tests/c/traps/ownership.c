// every function of the malloc family resolves to libflarena.so
#include "check.h"

int main(void) {
    const char *family[] = {"malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign", "aligned_alloc", "memalign",
                            "valloc", "pvalloc", "malloc_usable_size", "malloc_trim", "mallopt", "mallinfo", "mallinfo2",
                            "malloc_stats", "malloc_info", "cfree", "free_sized", "free_aligned_sized"};
    const char *expected = mode_is("bare") ? "libc.so.6" : "libflarena.so";
    for (size_t i = 0; i < COUNT(family) - (mode_is("bare") ? 3 : 0); i++) {
        void *function = dlsym(RTLD_DEFAULT, family[i]);
        CHECK(function != NULL, "no %s", family[i]);
        CHECK(ends_with(library_of(function), expected), "%s belongs to %s", family[i], library_of(function));
    }
}
