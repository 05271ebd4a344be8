// under RLIMIT_AS malloc fails with ENOMEM only when the addresses are used up, and works again after free
// qemu's user mode does not enforce RLIMIT_AS
#include "check.h"

int main(void) {
    struct rlimit limit = {700 * MB, 700 * MB};
    char *blocks[400];
    int count = 0;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (int round = 0; round < 5; round++) {
        size_t size = (3 + (size_t)round * 2) * MB;
        errno = 0;
        while (count < 400 && (blocks[count] = malloc(size)) != NULL)
            touch(blocks[count++], size, 1);
        CHECK(count < 400 && errno == ENOMEM);
        CHECK((size_t)count * size > 450 * MB);
        while (count > 0)
            free(blocks[--count]);
    }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}
