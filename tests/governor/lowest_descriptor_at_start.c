// a descriptor that the program opens while the governor starts gets the lowest free number
#include "check.h"
#include <pthread.h>

enum { THREADS = 1000 }; // the governor reads a file for each of them at its start

static void *wait_forever(void *unused) {
    pause();
    return unused;
}

int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KB);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &small, wait_forever, NULL) == 0);
    }
    char *large = malloc_touched(400 * MB, 1);
    CHECK(count_threads("flarena") == 0, "the governor started too early");
    close(0);
    free(large); // starts the governor
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    long opened = 0, others = 0;
    do {
        int fd = open("/", O_PATH);
        others += fd != 0;
        opened++;
        close(fd);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 2);
    await_governor();
    CHECK(others == 0, "%ld of %ld descriptors got another number", others, opened);
    return 0;
}
