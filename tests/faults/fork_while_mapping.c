// Forks while another thread allocates gigabytes of new addresses. Each child must be able to allocate one too.
#include "check.h"

enum { FORKS = 60, SECONDS_OF_CHILD = 60 };

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
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS_OF_CHILD);
            _exit(malloc(3 * GB) == NULL);
        }
        CHECK_CHILD(child);
    }
    _exit(0); // without a join: the other thread is still allocating
}
