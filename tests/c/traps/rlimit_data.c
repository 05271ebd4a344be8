// under a small RLIMIT_DATA malloc returns NULL and ENOMEM, and works again after frees
// qemu's user mode does not enforce RLIMIT_DATA, so the test would take all memory of the machine
#include "check.h"

int main(int argc, char **argv) {
    restart_with_limit(argc, argv, RLIMIT_DATA, 160 * MB);
    const size_t sizes[] = {3 * MB, 20 * MB, 500 * KB, 7 * MB + 1};
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            static void *blocks[4096];
            size_t count = 0;
            while (count < COUNT(blocks) && (blocks[count] = malloc(sizes[i])) != NULL) {
                memset(blocks[count], 1, 4096);
                count++;
            }
            CHECK(count > 0 && count < COUNT(blocks) && errno == ENOMEM, "%zu blocks of %zu, errno %d", count, sizes[i], errno);
            while (count > 0)
                free(blocks[--count]);
            malloc_trim(0);
        }
}
