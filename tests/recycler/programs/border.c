// realloc across the border of small and large keeps the contents, in both directions
#include "recycler.h"
#include <malloc.h>

int main(void)
{
    char *block = malloc(1000);
    memset(block, 5, 1000);
    for (int round = 0; round < 20; round++) {
        block = realloc(block, 3 * MIB);
        CHECK(block != NULL && is_large(block) && malloc_usable_size(block) >= 3 * MIB);
        for (int i = 0; i < 1000; i++)
            CHECK(block[i] == 5);
        memset(block, 5, 3 * MIB);
        block = realloc(block, 200 * 1024);
        CHECK(block != NULL && malloc_usable_size(block) >= 200 * 1024);
        for (int i = 0; i < 200 * 1024; i++)
            CHECK(block[i] == 5);
        block = realloc(block, 1000);
    }
    free(block);
    CHECK(recycler_number("live_bytes") == 0);
}
