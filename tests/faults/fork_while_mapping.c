// Forks while another thread allocates gigabytes of new addresses. Each child must be able to allocate one too.
#include "check.h"

enum { FORKS = 60 };

// The blocks are never freed, so that each needs a new mapping.
static void *allocate(void *unused) {
    while (malloc(GB + GB / 2) != NULL)
        ;
    return unused;
}

int main(void) {
    pthread_t allocator;
    prctl(0x666c6172, 0, 0, 0, 0); // arms fail
    start_threads(&allocator, 1, allocate);
    for (int i = 0; i < FORKS; i++) {
        usleep((useconds_t)(i * 700));
        IN_CHILD CHECK(malloc(3 * GB) != NULL);
    }
    _exit(0); // without a join: the other thread is still allocating
}
