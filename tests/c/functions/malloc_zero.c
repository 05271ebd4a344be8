// malloc(0), calloc(0, n) and calloc(n, 0) return distinct pointers that can be freed
#include "check.h"

int main(void) {
    void *blocks[] = {malloc(0), malloc(0), calloc(0, 8), calloc(8, 0), realloc(NULL, 0), reallocarray(NULL, 0, 8),
                      aligned_alloc(64, 0), memalign(64, 0), valloc(0)};
    for (size_t i = 0; i < COUNT(blocks); i++) {
        CHECK(blocks[i] != NULL, "NULL from call %zu", i);
        for (size_t j = 0; j < i; j++)
            CHECK(blocks[i] != blocks[j], "calls %zu and %zu both gave %p", i, j, blocks[i]);
    }
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
}
