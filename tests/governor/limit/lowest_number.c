// a descriptor that the program opens gets the lowest free number, whatever the governor reads meanwhile
#include "check.h"

int main(void) {
    free_most(small_heap(100 * MB));
    char *live = malloc_touched(100 * MB, 1); // near the limit: it looks four times a second
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
    CHECK(others == 0, "%ld of %ld got another number", others, opened);
    free(live);
    return 0;
}
