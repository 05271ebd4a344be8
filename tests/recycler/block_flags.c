// what a program does to a block with madvise, mlock, mprotect or mbind does not affect the next block there
#include "vma_attributes.h"

int main(void) {
    const size_t sizes[] = {1 * MB + 100, 3 * MB / 2, 2 * MB, 3 * MB, 4 * MB, 9 * MB + 5000, 40 * MB};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int place = 0; place < PLACES; place++) {
                char *start, *left = malloc(sizes[s]), *block = malloc(sizes[s]), *right = malloc(sizes[s]);
                size_t length;
                stamp_pages(left, sizes[s], 1);
                stamp_pages(block, sizes[s], 2);
                stamp_pages(right, sizes[s], 3);
                select_part(block, sizes[s], place, &start, &length);
                int refused = set_attribute(start, length, kind) != 0; // some kernels lack some of them
                free(block);
                if (!refused)
                    check_next_user(sizes[s], kind, place);
                CHECK(pages_match(left, sizes[s], 1), "%s: the block before changed", KIND_NAMES[kind]);
                CHECK(pages_match(right, sizes[s], 3), "%s: the block after changed", KIND_NAMES[kind]);
                free(left);
                free(right);
            }
    check_nothing_locked();
}
