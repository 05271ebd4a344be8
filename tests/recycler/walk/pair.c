// Mallocs and frees of 8 MiB, with pages cached. It stops before the last malloc, after it, and after the last free.
#include <signal.h>
#include <stdlib.h>

static volatile char *block;

static void allocate(void) {
    block = malloc(8 << 20);
    block[0] = 1;
}

int main(void) {
    for (int times = 0; times < 200; times++) {
        allocate();
        free((void *)block);
    }
    raise(SIGSTOP);
    allocate();
    raise(SIGSTOP);
    free((void *)block);
    raise(SIGSTOP);
}
