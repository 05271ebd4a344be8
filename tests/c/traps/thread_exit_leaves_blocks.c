// blocks of a thread that has ended can be read, resized and freed by other threads
#include "check.h"

static void *allocate(void *size) {
    void *block = malloc((size_t)size);
    fill(block, (size_t)size, 3);
    return block;
}

int main(void) {
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            pthread_t thread;
            void *block;
            pthread_create(&thread, NULL, allocate, (void *)SIZES[i]);
            pthread_join(thread, &block);
            CHECK(first_mismatch(block, SIZES[i], 3) == SIZES[i], "a block of %zu", SIZES[i]);
            block = realloc(block, SIZES[i] + SIZES[i] / 2);
            CHECK(first_mismatch(block, SIZES[i], 3) == SIZES[i], "a block of %zu after realloc", SIZES[i]);
            free(block);
        }
}
