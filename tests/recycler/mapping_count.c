// sparsely used blocks of mixed sizes take less than a third of the mappings that the process may have
// qemu's user mode has too few addresses for the library's address window
#include "vma_attributes.h"

int main(void) {
    size_t allowed = max_mappings();
    if (allowed > 100000)
        SKIP("this machine allows too many mappings for this test");
    size_t count = allowed;
    char **blocks = malloc(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(3 * MB / 2);
        if (blocks[i] == NULL)
            SKIP("not enough addresses");
        blocks[i][0] = 1;
    }
    for (size_t i = 0; i < count; i += 2) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    for (size_t i = 0; i + 40 < count; i += 40) {
        blocks[i] = malloc(40 * MB);
        blocks[i][0] = 1;
    }
    size_t used = (size_t)count_mappings(NULL, SIZE_MAX);
    CHECK(used < allowed / 3, "%zu mappings of %zu", used, allowed);
    CHECK(statistic("recycler", "fresh_bytes_total") > 0, "no block came from the recycler");
}
