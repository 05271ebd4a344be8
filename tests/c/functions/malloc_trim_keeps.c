// malloc_trim in eight threads at once changes no live block
#include "check.h"

static void *trim_and_check(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number * 100;
    for (int round = 0; round < 15; round++) {
        char *blocks[COUNT(SIZES)];
        for (size_t i = 0; i + 1 < COUNT(SIZES); i++) {
            free(malloc(SIZES[i] * 2));
            blocks[i] = malloc(SIZES[i]);
            fill(blocks[i], SIZES[i], seed + (unsigned)i);
        }
        malloc_trim(0);
        for (size_t i = 0; i + 1 < COUNT(SIZES); i++) {
            size_t wrong = first_mismatch(blocks[i], SIZES[i], seed + (unsigned)i);
            CHECK(wrong == SIZES[i], "byte %zu of %zu changed", wrong, SIZES[i]);
            free(blocks[i]);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[8];
    start_threads(threads, COUNT(threads), trim_and_check);
    join_threads(threads, COUNT(threads));
}
