// realloc between a small and a large size keeps the contents, in both directions
#include "check.h"

int main(void) {
    char *block = malloc(1000);
    memset(block, 5, 1000);
    for (int round = 0; round < 20; round++) {
        block = realloc(block, 3 * MB);
        CHECK(block != NULL && statistic("recycler", "live_blocks") == 1 && malloc_usable_size(block) >= 3 * MB);
        for (int i = 0; i < 1000; i++)
            CHECK(block[i] == 5);
        memset(block, 5, 3 * MB);
        block = realloc(block, 200 * 1024);
        CHECK(block != NULL && malloc_usable_size(block) >= 200 * 1024);
        for (int i = 0; i < 200 * 1024; i++)
            CHECK(block[i] == 5);
        block = realloc(block, 1000);
    }
    free(block);
    CHECK(statistic("recycler", "live_bytes") == 0);
}
