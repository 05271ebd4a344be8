// holder live|free MEGABYTES: holds small blocks, or free memory, until stdin ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 1000

static void *must(void *pointer) {
    if (pointer == NULL) exit(1);
    return pointer;
}

static void fill(char **held, size_t count) {
    for (size_t i = 0; i < count; i++) memset(held[i] = must(malloc(BLOCK)), 1, BLOCK);
}

// Keeps the last block, so that the heap does not shrink by itself.
static void empty(char **held, size_t count) {
    for (size_t i = 0; i + 1 < count; i++) free(held[i]);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    size_t blocks = (strtoul(arguments[2], NULL, 10) << 20) / BLOCK;
    char **held = must(malloc(blocks * sizeof *held));
    fill(held, blocks);
    // The governor starts at one free in some thousands, so free each block once.
    empty(held, blocks);
    if (strcmp(arguments[1], "live") == 0) fill(held, blocks - 1);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
