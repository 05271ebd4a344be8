// calloc returns zeroed memory when it joins or splits dirty blocks of other sizes
#include "check.h"

int main(void) {
    for (unsigned round = 0; round < 6; round++) {
        void *dirty[12];
        for (unsigned i = 0; i < COUNT(dirty); i++) {
            size_t size = (1 + (i * 5 + round) % 7) * MB + i * 4096 + 123;
            dirty[i] = malloc(size);
            memset(dirty[i], 0xff, size);
        }
        for (unsigned i = 0; i < COUNT(dirty); i++)
            free(dirty[i]);
        const size_t wanted[] = {30 * MB + 1, 1 * MB + 4097, 4 * MB, 2 * MB + 17};
        for (unsigned i = 0; i < COUNT(wanted); i++) {
            unsigned char *block = calloc(1, wanted[i]);
            size_t dirt = first_nonzero(block, wanted[i]);
            CHECK(dirt == wanted[i], "byte %zu of calloc(%zu) is %d in round %u", dirt, wanted[i], block[dirt], round);
            memset(block, 0xdd, wanted[i]);
            dirty[i] = block;
        }
        for (unsigned i = 0; i < COUNT(wanted); i++)
            free(dirty[i]);
    }
}
