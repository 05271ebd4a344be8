// a trim that would start the governor when addresses have run out does not crash
// qemu's user mode does not enforce RLIMIT_AS
#include "check.h"
#include "flarena.h"

int main(int argc, char **argv) {
    restart_with_limit(argc, argv, RLIMIT_AS, 400 * MB);
    static char *blocks[1 << 12];
    size_t count = 0;
    // Untouched blocks are not resident, so the governor does not start yet.
    while (count < COUNT(blocks) && (blocks[count] = malloc(1 * MB)) != NULL)
        count++;
    CHECK(count > 100 && count < COUNT(blocks), "%zu blocks", count);
    for (size_t i = 0; i < 100; i++)
        memset(blocks[i], 1, 1 * MB);
    if (flarena_trim)
        flarena_trim();
    usleep(200 * 1000);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    char *again = malloc(32 * MB);
    CHECK(again != NULL, "malloc after %zu frees: %s", count, strerror(errno));
    free(again);
}
