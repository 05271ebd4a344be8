// a process can fork while its threads allocate; the child can allocate, free, trim and exit
#include "check.h"
#include <stdatomic.h>

static atomic_int stop;

static void *churn(void *seed_pointer) {
    unsigned seed = (unsigned)(uintptr_t)seed_pointer;
    void *blocks[16] = {0};
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        seed = seed * 1103515245 + 12345;
        size_t size = (seed >> 8) % 8 == 0 ? (seed >> 12) % (6 * MB) : (seed >> 12) % 3000;
        free(blocks[i % 16]);
        blocks[i % 16] = malloc(size + 1);
        *(char *)blocks[i % 16] = 1;
        if (i % 1000 == 0)
            malloc_trim(0);
    }
    for (int i = 0; i < 16; i++)
        free(blocks[i]);
    return NULL;
}

static void child(void *inherited) {
    alarm(20); // if a lock stays locked in the child, the test fails instead of hanging
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        char *block = malloc(SIZES[i]);
        memset(block, 1, SIZES[i]);
        free(block);
    }
    size_t wrong = first_mismatch(inherited, 5 * MB, 1);
    CHECK(wrong == 5 * MB, "byte %zu of the parent's block is wrong in the child", wrong);
    free(realloc(inherited, 9 * MB));
    malloc_trim(0);
    exit(0);
}

int main(void) {
    pthread_t threads[6];
    start_threads(threads, COUNT(threads), churn);
    void *kept = malloc(5 * MB);
    fill(kept, 5 * MB, 1);
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        if (pid == 0)
            child(kept);
        CHECK_CHILD(pid);
        CHECK(first_mismatch(kept, 5 * MB, 1) == 5 * MB, "the child changed the parent's block");
    }
    atomic_store(&stop, 1);
    join_threads(threads, COUNT(threads));
}
