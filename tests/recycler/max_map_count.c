// allocation continues when the process reaches vm.max_map_count
#include "check.h"
#include <sys/mman.h>

int main(void) {
    size_t allowed = max_mappings();
    if (allowed > 300000)
        SKIP("this machine allows too many mappings to use them up");
    size_t count = allowed + 1000, last = 0;
    char *pages = mmap(NULL, count * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "mmap: %s", strerror(errno));
    while (last < count && mprotect(pages + last * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0)
        last += 2;
    CHECK(last < count, "%zu mappings were made without a refusal", last);
    // Frees some mappings for the first blocks. Moves and splits soon reach the limit.
    for (size_t i = 2; i < 80; i += 2)
        mprotect(pages + (last - i) * PAGE, PAGE, PROT_READ);
    char *blocks[60];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 60; i++)
            blocks[i] = malloc_touched((size_t)(1 + (i * 7 + round) % 9) * MB + 1, (char)i);
        for (int i = 0; i < 60; i++) {
            CHECK(blocks[i][0] == (char)i);
            free(blocks[i]);
        }
    }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}
