// a library loaded with RTLD_DEEPBIND, which has glibc's malloc, exchanges blocks with the program in glibc mode
#include "check.h"

int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_DEEPBIND);
    CHECK(library != NULL, "%s", dlerror());
    char *(*give)(size_t);
    void (*take)(char *);
    *(void **)&give = dlsym(library, "block_of_library");
    *(void **)&take = dlsym(library, "free_in_library");
    // Large blocks are the recycler's, which such a library does not see.
    int recycles = getenv("FLARENA_RECYCLE") == NULL || strcmp(getenv("FLARENA_RECYCLE"), "off") != 0;
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        char *theirs = give(SIZES[i]);
        CHECK(theirs[SIZES[i] - 1] == 7, "a block of %zu", SIZES[i]);
        if (mode_is("jemalloc") || (recycles && SIZES[i] >= 512 * KB)) { // each side keeps its own: what docs/allocators.md asks for
            take(theirs);
            free(malloc(SIZES[i]));
            continue;
        }
        theirs = realloc(theirs, SIZES[i] * 2);
        CHECK(theirs[SIZES[i] - 1] == 7, "a block of %zu after realloc", SIZES[i]);
        free(theirs);
        take(memset(malloc(SIZES[i]), 1, SIZES[i]));
    }
    CHECK(dlclose(library) == 0, "%s", dlerror());
}
