// malloc returns distinct blocks, aligned to 16 bytes, that keep their contents
#include "check.h"

int main(void) {
    unsigned char *blocks[COUNT(SIZES)][3];
    for (size_t i = 0; i < COUNT(SIZES); i++)
        for (unsigned copy = 0; copy < 3; copy++) {
            unsigned char *block = malloc(SIZES[i]);
            CHECK(block != NULL, "malloc(%zu): %s", SIZES[i], strerror(errno));
            CHECK((uintptr_t)block % (SIZES[i] < 16 ? 8 : 16) == 0, "malloc(%zu) = %p", SIZES[i], (void *)block);
            fill(block, SIZES[i], (unsigned)i * 3 + copy);
            blocks[i][copy] = block;
        }
    for (size_t i = 0; i < COUNT(SIZES); i++)
        for (unsigned copy = 0; copy < 3; copy++) {
            size_t wrong = first_mismatch(blocks[i][copy], SIZES[i], (unsigned)i * 3 + copy);
            CHECK(wrong == SIZES[i], "byte %zu of a block of %zu changed", wrong, SIZES[i]);
            free(blocks[i][copy]);
        }
}
