// a child of vfork that allocates much starts no governor, and its parent can start one afterwards
#include "check.h"

int main(void) {
    if (mode_is("bare"))
        SKIP("without the library there is no governor");
    // As an interpreter may do between vfork and exec, in the memory of its parent.
    pid_t child = vfork();
    if (child == 0) {
        for (int i = 0; i < 8; i++) {
            void *block = malloc(64 * MB);
            if (block == NULL)
                _exit(1);
            memset(block, 1, 64 * KB);
            free(block);
        }
        free_most(small_heap(150 * MB));
        _exit(count_threads("flarena"));
    }
    CHECK_CHILD(child);
    CHECK(count_threads("flarena") == 0, "%d governor threads", count_threads("flarena"));
    free_most(small_heap(150 * MB));
    await_governor();
}
