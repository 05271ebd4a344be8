// in glibc mode a library loaded with RTLD_DEEPBIND, which uses libc's malloc, and the program can free each other's blocks
#include "check.h"

int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_DEEPBIND);
    CHECK(library != NULL, "%s", dlerror());
    char *(*allocate_in_library)(size_t);
    void (*free_in_library)(char *);
    *(void **)&allocate_in_library = dlsym(library, "block_of_library");
    *(void **)&free_in_library = dlsym(library, "free_in_library");
    // Large blocks come from the recycler, and libc's free in such a library cannot free them.
    int recycles = getenv("FLARENA_RECYCLE") == NULL || strcmp(getenv("FLARENA_RECYCLE"), "off") != 0;
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        char *block = allocate_in_library(SIZES[i]);
        CHECK(block[SIZES[i] - 1] == 7, "a block of %zu", SIZES[i]);
        if (mode_is("jemalloc") || (recycles && SIZES[i] >= 512 * KB)) { // each side must free its own blocks (docs/allocators.md)
            free_in_library(block);
            free(malloc(SIZES[i]));
            continue;
        }
        block = realloc(block, SIZES[i] * 2);
        CHECK(block[SIZES[i] - 1] == 7, "a block of %zu after realloc", SIZES[i]);
        free(block);
        free_in_library(memset(malloc(SIZES[i]), 1, SIZES[i]));
    }
    CHECK(dlclose(library) == 0, "%s", dlerror());
}
