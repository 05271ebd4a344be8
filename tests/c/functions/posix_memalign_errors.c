// posix_memalign returns its error and keeps the pointer; it sets errno only if memory is short
#include "check.h"

int main(void) {
    const size_t alignments[] = {0, 1, 2, 4, 3, 7, 12, 24, 48, 4097, SIZE_MAX};
    errno = EXDEV;
    for (size_t i = 0; i < COUNT(alignments); i++) {
        void *untouched = &untouched;
        int error = posix_memalign(&untouched, alignments[i], 100);
        CHECK(error == EINVAL, "posix_memalign(%zu) = %d", alignments[i], error);
        CHECK(untouched == &untouched, "the pointer was set to %p", untouched);
    }
    CHECK(errno == EXDEV, "a refused alignment set errno to %d", errno);
    void *block;
    for (size_t size = 100; size <= 10 * MB; size *= 10) {
        int error = posix_memalign(&block, 64, size);
        CHECK(error == 0 && errno == EXDEV, "posix_memalign(%zu) = %d, errno %d", size, error, errno);
        free(block);
    }
    // Many programs call perror(NULL) after a failure, although POSIX does not set errno.
    const size_t hopeless[][2] = {{64, PTRDIFF_MAX}, {64, SIZE_MAX}, {(size_t)1 << 62, 1}, {4096, (size_t)1 << 47}, {64, (size_t)1 << 60}};
    for (size_t i = 0; i < COUNT(hopeless); i++) {
        void *untouched = &untouched;
        errno = 0;
        int error = posix_memalign(&untouched, hopeless[i][0], hopeless[i][1]);
        CHECK(error == ENOMEM && untouched == &untouched, "%zu: %d, %p", i, error, untouched);
        CHECK(errno == ENOMEM, "%zu: errno %d", i, errno);
    }
}
