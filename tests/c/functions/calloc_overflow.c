// calloc returns NULL and ENOMEM if the product overflows
#include "check.h"

int main(void) {
    const size_t pairs[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, SIZE_MAX},
                               {(size_t)1 << 32, (size_t)1 << 32}, {((size_t)1 << 33) + 1, (size_t)1 << 31}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        errno = 0;
        void *block = calloc(pairs[i][0], pairs[i][1]);
        CHECK(block == NULL && errno == ENOMEM, "calloc(%zx, %zx) = %p, errno %d", pairs[i][0], pairs[i][1], block, errno);
    }
}
