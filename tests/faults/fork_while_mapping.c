// Forks while another thread allocates gigabytes of new addresses. Each child must be able to allocate one too.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 60, SECONDS_OF_CHILD = 60 };
#define GB ((size_t)1 << 30)

// The blocks are never freed, so that each needs a new mapping.
static void *allocate(void *unused) {
    while (malloc(GB + GB / 2) != NULL)
        ;
    return unused;
}

int main(void) {
    pthread_t allocator;
    prctl(0x666c6172, 0, 0, 0, 0); // arms fail
    if (pthread_create(&allocator, NULL, allocate, NULL) != 0)
        return 2;
    for (int i = 0; i < FORKS; i++) {
        int status;
        usleep((useconds_t)(i * 700));
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS_OF_CHILD);
            _exit(malloc(3 * GB) == NULL);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "fork %d: %s, ended with %x\n", i, child < 0 ? strerror(errno) : "no error", status);
            _exit(1);
        }
    }
    _exit(0); // without a join: the other thread is still allocating
}
