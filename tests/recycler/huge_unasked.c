// nobody asks for huge pages where the system gives them on request
#include "marks.h"

int main(void) {
    char policy[64] = "";
    int file = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, policy, sizeof policy - 1) <= 0 || strstr(policy, "[madvise]") == NULL)
        SKIP("here the system decides alone");
    close(file);
    const size_t sizes[] = {2 * MB, 4 * MB, 6 * MB, 8 * MB, 16 * MB, 5 * MB + 1};
    for (int round = 0; round < 4; round++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            char *blocks[4];
            for (size_t i = 0; i < COUNT(blocks); i++) {
                blocks[i] = touched(sizes[s], 1);
                CHECK(flag_shown(blocks[i], sizes[s], " hg") == 0, "block %zu of %zu bytes, round %d", i, sizes[s], round);
            }
            // A mark of another kind is no wish for huge pages.
            madvise(blocks[1] + MB, 4096, MADV_DONTFORK);
            for (size_t i = 0; i < COUNT(blocks); i++)
                free(blocks[i]);
        }
    if (!mode_is("bare"))
        CHECK(statistic("recycler", "recycled_bytes_total") > 0, "nothing was recycled");
}
