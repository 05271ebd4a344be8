// memalign rounds alignments up to a power of two
#include "check.h"

static size_t next_power(size_t number) {
    size_t power = 1;
    while (power < number)
        power *= 2;
    return power;
}

int main(void) {
    const size_t alignments[] = {0, 1, 3, 8, 16, 24, 100, 4096, 5000, 64 * KB, 2 * MB, 3 * MB, 16 * MB};
    for (size_t a = 0; a < COUNT(alignments); a++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            void *block = memalign(alignments[a], SIZES[i]);
            CHECK(block != NULL && (uintptr_t)block % next_power(alignments[a]) == 0, "memalign(%zu, %zu) = %p", alignments[a],
                  SIZES[i], block);
            memset(block, 1, SIZES[i]);
            free(block);
        }
    errno = 0;
    CHECK(memalign(SIZE_MAX, 1) == NULL && errno == EINVAL, "memalign(SIZE_MAX): errno %d", errno);
    errno = 0;
    CHECK(memalign((size_t)1 << 62, 1) == NULL && errno == ENOMEM, "memalign(1 << 62): errno %d", errno);
}
