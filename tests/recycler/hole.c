// a block that the program cut a hole into hides no protection key and no guard of a later one
#include "marks.h"

enum { SIZE = 4 * MB };

int main(void) {
    if (mode_is("bare"))
        SKIP("a heap keeps what was done to its pages");
    char *cut = malloc_touched(SIZE, 1);
    munmap(cut + MB, PAGE);
    sleep_ms(60); // long enough for the look for guards
    free(cut);

    char *start, *keyed = malloc_touched(SIZE, 1);
    size_t length;
    part_of(keyed, SIZE, WHOLE, &start, &length);
    int refused = mark_part(start, length, KEY) != 0;
    free(keyed);
    if (!refused)
        check_next_user(SIZE, KEY, WHOLE);

    char *guarded = malloc_touched(SIZE, 1);
    part_of(guarded, SIZE, FIRST_PAGE, &start, &length);
    refused &= madvise(start, length, MADV_GUARD_INSTALL) != 0;
    sleep_ms(60);
    free(guarded);
    if (refused)
        SKIP("no protection keys, and a kernel without guards");
    check_no_guard(SIZE);
}
