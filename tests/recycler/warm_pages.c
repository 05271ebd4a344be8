// a thread gets the pages that were freed on its own processor before those freed on another

#include "check.h"

#define BYTES (3 * MB)

static int cpus[2];

static void move_to(int which) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[which], &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "%s", strerror(errno));
}

// Frees each block on its own processor. Then allocates on the processor of the first, which must reuse the first.
static void check_reuse(void *blocks[2], int first) {
    for (int index = 0; index < 2; index++) {
        move_to(first ^ index);
        free(blocks[first ^ index]);
    }
    move_to(first);
    void *same = malloc_touched(BYTES, 1);
    CHECK(same == blocks[first], "%p of %p and %p", same, blocks[0], blocks[1]);
    CHECK(malloc_touched(BYTES, 1) == blocks[first ^ 1], "the other block is not reused");
}

int main(void) {
    restart_with_slow_decay();
    const unsigned *rseq_size = (const unsigned *)dlsym(RTLD_DEFAULT, "__rseq_size");
    if (rseq_size == NULL || *rseq_size == 0)
        SKIP("this libc does not register rseq, which names a thread's processor");
    cpu_set_t all;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "%s", strerror(errno));
    int found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &all))
            cpus[found++] = cpu;
    if (found < 2)
        SKIP("this process may use one processor only");
    void *held[5]; // the two blocks lie between blocks that stay
    for (int index = 0; index < 5; index++)
        held[index] = malloc_touched(BYTES, 1);
    void *blocks[2] = {held[1], held[3]};
    for (int round = 0; round < 10; round++)
        check_reuse(blocks, round % 2);
}
