// Opens and closes a file again and again, with descriptor 0 free, and checks that each file gets number 0.
#pragma once
#include "check.h"

static inline void check_lowest_descriptor_for(int seconds) {
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
    } while (now.tv_sec - start.tv_sec < seconds);
    CHECK(others == 0, "%ld of %ld descriptors got another number", others, opened);
}
