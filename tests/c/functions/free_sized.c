// free_sized and free_aligned_sized free blocks of every size and preserve errno
#include "check.h"

int main(void) {
    void (*sized)(void *, size_t), (*aligned)(void *, size_t, size_t);
    *(void **)&sized = dlsym(RTLD_DEFAULT, "free_sized");
    *(void **)&aligned = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    if (sized == NULL && mode_is("bare"))
        SKIP("this glibc has no free_sized");
    CHECK(sized != NULL && aligned != NULL, "missing");
    sized(NULL, 0);
    aligned(NULL, 64, 0);
    for (int round = 0; round < 40; round++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            char *block = malloc(SIZES[i]), *zeroed = calloc(SIZES[i], 1), *line = aligned_alloc(64, SIZES[i]);
            block[0] = zeroed[0] = line[0] = 1;
            errno = EXDEV;
            sized(block, SIZES[i]);
            sized(zeroed, SIZES[i]);
            aligned(line, 64, SIZES[i]);
            CHECK(errno == EXDEV, "errno %d", errno);
        }
    CHECK(rss_bytes() < (long)(200 * MB), "%ld bytes resident", rss_bytes());
}
