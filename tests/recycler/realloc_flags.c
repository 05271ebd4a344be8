// what a program did to a block does not stay where realloc moved the block away, or cut it off
#include "marks.h"

// A marked block, resized and freed; the memory that it had goes to the next users.
static void resize_marked(size_t size, size_t to, int kind, int place) {
    char *start, *left = malloc(size), *block = malloc(size), *right = malloc(size);
    size_t length, kept = size < to ? size : to;
    stamp_pages(left, size, 1);
    stamp_pages(block, size, 2);
    stamp_pages(right, size, 3);
    part_of(block, size, place, &start, &length);
    int refused = mark_part(start, length, kind) != 0; // not every kernel knows them all
    block = realloc(block, to);
    CHECK(block != NULL, "realloc to %zu", to);
    if (kind != NO_ACCESS)
        CHECK(pages_match(block, kept, 2), "%s: realloc from %zu to %zu lost bytes", NAMES[kind], size, to);
    if (!refused && to > size)
        check_next_user(size, kind, place);
    free(block);
    if (!refused) {
        check_next_user(size, kind, place);
        check_next_user(to, kind, place);
    }
    CHECK(pages_match(left, size, 1), "%s: the block before changed", NAMES[kind]);
    CHECK(pages_match(right, size, 3), "%s: the block after changed", NAMES[kind]);
    free(left);
    free(right);
}

int main(void) {
    if (mode_is("bare"))
        SKIP("a heap keeps what was done to its pages");
    const size_t sizes[] = {3 * MB / 2, 4 * MB, 9 * MB + 5000};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < KINDS; kind++)
            // Whole units with this advice are like any others, and it does no harm.
            for (int place = kind == NO_HUGE_PAGE ? PLACES : 0; place < PLACES; place++) {
                if (place == FIRST_HALF || place == ONE_PAGE || place == ALL_BUT_FIRST_PAGE)
                    continue;
                resize_marked(sizes[s], sizes[s] * 3 / 4, kind, place);
                resize_marked(sizes[s], sizes[s] / 2 + MB / 2, kind, place);
                // To move a block that cannot be read is nobody's: a copy dies of it.
                if (kind != NO_ACCESS)
                    resize_marked(sizes[s], sizes[s] * 3, kind, place);
            }
    check_nothing_locked();
}
