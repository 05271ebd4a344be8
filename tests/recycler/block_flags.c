// what a program does to a block with madvise, mlock, mprotect or mbind does not affect the next block there
#include "vma_attributes.h"

int main(void) {
    const size_t sizes[] = {1 * MB + 100, 3 * MB / 2, 2 * MB, 3 * MB, 4 * MB, 9 * MB + 5000, 40 * MB};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int place = 0; place < PLACES; place++) {
                Three three = malloc_three(sizes[s]);
                char *start;
                size_t length;
                select_part(three.block, sizes[s], place, &start, &length);
                int refused = set_attribute(start, length, kind) != 0; // some kernels lack some of them
                free(three.block);
                if (!refused)
                    check_next_user(sizes[s], kind, place);
                free_neighbours(three, kind);
            }
    check_nothing_locked();
}
