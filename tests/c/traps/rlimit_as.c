// under a small RLIMIT_AS malloc returns NULL and ENOMEM, and works again after frees
// qemu's user mode does not enforce RLIMIT_AS, so the test would take all memory of the machine
#include "check.h"

static void exhaust(size_t size) {
    static void *blocks[1 << 16];
    size_t count = 0;
    errno = 0;
    while (count < COUNT(blocks) && (blocks[count] = malloc(size)) != NULL) {
        memset(blocks[count], 1, size < 4096 ? size : 4096);
        count++;
    }
    CHECK(count > 0 && (count == COUNT(blocks) || errno == ENOMEM), "%zu blocks of %zu, errno %d", count, size, errno);
    size_t addresses = count * ((size + 2 * MB - 1) / (2 * MB) * (2 * MB)); // a large block takes whole units
    CHECK(size < 1 * MB || addresses > 250 * MB, "only %zu blocks of %zu below 400 MB", count, size);
    CHECK(calloc(1, 400 * MB) == NULL, "calloc beyond the limit");
    if (count > 1) {
        fill(blocks[0], size, 3);
        void *none = realloc(blocks[0], 400 * MB);
        CHECK(none == NULL && first_mismatch(blocks[0], size, 3) == size, "realloc beyond the limit: %p", none);
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    void *again = malloc(size);
    CHECK(again != NULL, "malloc(%zu) after %zu frees: %s", size, count, strerror(errno));
    free(again);
    malloc_trim(0);
}

int main(int argc, char **argv) {
    restart_with_limit(argc, argv, RLIMIT_AS, 400 * MB);
    for (int round = 0; round < 3; round++) {
        exhaust(4 * MB);
        exhaust(32 * MB);
        exhaust(1 * MB);
        exhaust(2 * MB + 1);
        exhaust(100 * KB);
    }
}
