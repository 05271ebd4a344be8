// posix_memalign returns its errors, sets neither errno nor the pointer
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
    void *untouched = &untouched;
    int error = posix_memalign(&untouched, 64, PTRDIFF_MAX);
    CHECK(error == ENOMEM && untouched == &untouched, "%d, %p", error, untouched);
    error = posix_memalign(&untouched, (size_t)1 << 62, 1);
    CHECK(error == ENOMEM && untouched == &untouched, "%d, %p", error, untouched);
    CHECK(errno == EXDEV || errno == ENOMEM, "errno %d", errno);
}
