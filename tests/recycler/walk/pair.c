// Mallocs and frees of 8 MiB, with pages cached, for gdb.
#include <stdlib.h>

__attribute__((noinline)) void *allocate(void) {
    return malloc(8 << 20);
}

__attribute__((noinline)) void release(void *block) {
    free(block);
}

__attribute__((noinline)) void pair(void) {
    volatile char *block = allocate();
    block[0] = 1;
    release((void *)block);
}

int main(void) {
    for (int times = 0; times < 300; times++) {
        pair();
    }
    return 0;
}
