// calloc returns zeroed memory when it reuses dirty blocks of the same size
#include "check.h"

int main(void) {
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            void *dirty[2] = {malloc(SIZES[i]), malloc(SIZES[i])};
            memset(dirty[0], 0xff, SIZES[i]);
            memset(dirty[1], 0xff, SIZES[i]);
            free(dirty[0]);
            free(dirty[1]);
            unsigned char *block = calloc(SIZES[i], 1);
            CHECK(block != NULL, "calloc(%zu)", SIZES[i]);
            size_t dirt = first_nonzero(block, SIZES[i]);
            CHECK(dirt == SIZES[i], "byte %zu of calloc(%zu) is %d", dirt, SIZES[i], block[dirt]);
            memset(block, 0xee, SIZES[i]);
            free(block);
        }
}
