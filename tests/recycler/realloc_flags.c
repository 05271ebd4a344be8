// attributes of a block do not stay on the memory that realloc moves it away from or cuts off
#include "vma_attributes.h"

// Resizes and frees a block with an attribute, and then checks blocks in the memory that it had.
static void resize_with_attribute(size_t size, size_t to, int kind, int place) {
    Three three = malloc_three(size);
    char *start, *block = three.block;
    size_t length, kept = size < to ? size : to;
    select_part(block, size, place, &start, &length);
    int refused = set_attribute(start, length, kind) != 0; // some kernels lack some of them
    block = realloc(block, to);
    CHECK(block != NULL, "realloc to %zu", to);
    if (kind != NO_ACCESS)
        CHECK(pages_match(block, kept, 2), "%s: realloc from %zu to %zu lost bytes", KIND_NAMES[kind], size, to);
    if (!refused && to > size)
        check_next_user(size, kind, place);
    free(block);
    if (!refused) {
        check_next_user(size, kind, place);
        check_next_user(to, kind, place);
    }
    free_neighbours(three, kind);
}

int main(void) {
    const size_t sizes[] = {3 * MB / 2, 4 * MB, 9 * MB + 5000};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < KINDS; kind++)
            // MADV_NOHUGEPAGE may stay on whole units: the library does not detect it there, and it is harmless.
            for (int place = kind == NO_HUGE_PAGE ? PLACES : 0; place < PLACES; place++) {
                if (place == FIRST_HALF || place == ONE_PAGE || place == ALL_BUT_FIRST_PAGE)
                    continue;
                resize_with_attribute(sizes[s], sizes[s] * 3 / 4, kind, place);
                resize_with_attribute(sizes[s], sizes[s] / 2 + MB / 2, kind, place);
                // A copy of an unreadable block would crash, so such a block is not grown.
                if (kind != NO_ACCESS)
                    resize_with_attribute(sizes[s], sizes[s] * 3, kind, place);
            }
    check_nothing_locked();
}
