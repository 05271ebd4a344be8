// when no memory is left, markers, statistics and trims work and the program continues
// qemu's user mode does not enforce RLIMIT_AS, so the test would take all memory of the machine
#include "check.h"

static void *blocks[1 << 20];

// Allocates smaller and smaller blocks, each size until malloc returns NULL.
static size_t exhaust(void) {
    size_t count = 0;
    for (size_t size = 1 * MB; size >= 16; size /= 4)
        while (count < COUNT(blocks) && (blocks[count] = malloc(size)) != NULL)
            count++;
    return count;
}

int main(void) {
    restart_with_limit(RLIMIT_AS, 400 * MB);
    size_t count = exhaust();
    CHECK(count < COUNT(blocks) && malloc(1000) == NULL, "%zu blocks, and memory is left", count);
    char answer[16 * KB];
    for (int round = 0; round < 100; round++) {
        CHECK(flarena_mark("no memory", "site-1", round) == 0, "%s", strerror(errno));
        long length = flarena_stats_json(answer, sizeof answer);
        CHECK(length > 100 && answer[0] == '{', "statistics of %ld bytes", length);
        flarena_trim();
    }
    while (count > 0)
        free(blocks[--count]);
    CHECK(malloc(100 * MB) != NULL, "the freed memory cannot be allocated");
}
