// a library loaded with RTLD_DEEPBIND, which looks for malloc in libc first, and the program can free each other's blocks
#include "check.h"

int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_DEEPBIND);
    CHECK(library != NULL, "%s", dlerror());
    char *(*allocate_in_library)(size_t);
    void (*free_in_library)(char *);
    *(void **)&allocate_in_library = dlsym(library, "block_of_library");
    *(void **)&free_in_library = dlsym(library, "free_in_library");
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        char *block = allocate_in_library(SIZES[i]);
        CHECK(block[SIZES[i] - 1] == 7, "a block of %zu", SIZES[i]);
        block = realloc(block, SIZES[i] * 2);
        CHECK(block[SIZES[i] - 1] == 7, "a block of %zu after realloc", SIZES[i]);
        free(block);
        free_in_library(memset(malloc(SIZES[i]), 1, SIZES[i]));
    }
    CHECK(dlclose(library) == 0, "%s", dlerror());
}
