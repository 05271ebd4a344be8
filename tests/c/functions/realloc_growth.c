// a block that realloc grows in many steps to 100 MB and shrinks again keeps its contents
#include "check.h"

int main(void) {
    size_t size = 1;
    unsigned char *block = malloc(size), *neighbour = malloc(3 * MB);
    fill(block, size, 3);
    fill(neighbour, 3 * MB, 4);
    while (size < 100 * MB) {
        size_t next = size + size / 3 + 7;
        block = realloc(block, next);
        CHECK(block != NULL, "realloc to %zu", next);
        for (size_t at = size; at < next; at++)
            block[at] = pattern(at, 3);
        size = next;
    }
    size_t wrong = first_mismatch(block, size, 3);
    CHECK(wrong == size, "byte %zu was lost on the way to %zu", wrong, size);
    while (size > 1) {
        size = size - size / 3 - 1;
        block = realloc(block, size);
        CHECK(block != NULL, "realloc to %zu", size);
        CHECK(block[0] == pattern(0, 3) && block[size - 1] == pattern(size - 1, 3), "an end was lost at %zu", size);
    }
    CHECK(first_mismatch(neighbour, 3 * MB, 4) == 3 * MB, "the neighbour changed");
    free(block);
    free(neighbour);
}
