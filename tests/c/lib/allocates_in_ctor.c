// A library whose constructor allocates and whose destructor frees.
#include <stdlib.h>
#include <string.h>

static char *blocks[3];

__attribute__((constructor)) static void load(void) {
    const size_t sizes[] = {100, 70000, 5 << 20};
    for (int i = 0; i < 3; i++) {
        blocks[i] = malloc(sizes[i]);
        memset(blocks[i], 1, sizes[i]);
    }
}

__attribute__((destructor)) static void unload(void) {
    for (int i = 0; i < 3; i++)
        free(blocks[i]);
}

char *block_of_library(size_t size) {
    return memset(malloc(size), 7, size);
}

void free_in_library(char *block) {
    free(block);
}
