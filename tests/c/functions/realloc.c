// realloc keeps the contents between all pairs of sizes
#include "check.h"

int main(void) {
    for (size_t from = 0; from < COUNT(SIZES); from++)
        for (size_t to = 0; to < COUNT(SIZES); to++) {
            size_t kept = SIZES[from] < SIZES[to] ? SIZES[from] : SIZES[to];
            unsigned char *block = malloc(SIZES[from]);
            fill(block, SIZES[from], 7);
            block = realloc(block, SIZES[to]);
            CHECK(block != NULL, "realloc from %zu to %zu", SIZES[from], SIZES[to]);
            size_t wrong = first_mismatch(block, kept, 7);
            CHECK(wrong == kept, "byte %zu was lost from %zu to %zu", wrong, SIZES[from], SIZES[to]);
            memset(block, 1, SIZES[to]);
            free(block);
        }
}
