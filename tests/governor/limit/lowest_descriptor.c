// a descriptor that the program opens gets the lowest free number while the governor reads files near a limit
#include "check.h"

int main(void) {
    free_most(small_heap(100 * MB));
    char *live = malloc_touched(100 * MB, 1); // near the limit the governor reads files four times a second
    await_governor();
    sleep_ms(500);
    close(0);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    long opened = 0, others = 0;
    do {
        int fd = open("/", O_PATH);
        others += fd != 0;
        opened++;
        close(fd);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 8);
    CHECK(others == 0, "%ld of %ld descriptors got another number", others, opened);
    free(live);
    return 0;
}
