// free accepts NULL and preserves errno for blocks of every size
#include "check.h"

int main(void) {
    errno = EXDEV;
    free(NULL);
    CHECK(errno == EXDEV, "errno %d after free(NULL)", errno);
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            char *block = malloc(SIZES[i]);
            block[0] = block[SIZES[i] - 1] = 1;
            errno = EXDEV;
            free(block);
            CHECK(errno == EXDEV, "errno %d after the free of %zu bytes", errno, SIZES[i]);
        }
}
