// Forks while another thread takes one new gigabyte of addresses after the other: each child must get one too.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 60, SECONDS_OF_CHILD = 10 };
#define GB ((size_t)1 << 30)

// Never freed and never written: each begins beyond the addresses that the allocator knows.
static void *take(void *unused) {
    while (malloc(GB + GB / 2) != NULL)
        ;
    return unused;
}

int main(void) {
    pthread_t taker;
    prctl(0x666c6172, 0, 0, 0, 0); // fail.c: from here on
    if (pthread_create(&taker, NULL, take, NULL) != 0)
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
    _exit(0); // the taker may be in the middle of a call
}
