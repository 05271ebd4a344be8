// a descriptor that the program opens while the governor starts gets the lowest free number
#include "lowest.h"

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
    free(large); // starts the governor
    check_lowest_descriptor_for(2);
    await_governor();
}
