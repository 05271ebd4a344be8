// after a program unmapped a part of its block, protection keys and guard regions of later blocks are still detected
#include "vma_attributes.h"

enum { SIZE = 4 * MB };

int main(void) {
    char *cut = malloc_touched(SIZE, 1);
    munmap(cut + MB, PAGE);
    sleep_ms(GUARD_SEARCH_AGE_MS);
    free(cut);

    char *start, *keyed = malloc_touched(SIZE, 1);
    size_t length;
    select_part(keyed, SIZE, WHOLE, &start, &length);
    int refused = set_attribute(start, length, KEY) != 0;
    free(keyed);
    if (!refused)
        check_next_user(SIZE, KEY, WHOLE);

    char *guarded = malloc_touched(SIZE, 1);
    select_part(guarded, SIZE, FIRST_PAGE, &start, &length);
    refused &= madvise(start, length, MADV_GUARD_INSTALL) != 0;
    sleep_ms(GUARD_SEARCH_AGE_MS);
    free(guarded);
    if (refused)
        SKIP("this machine has neither protection keys nor guard regions");
    check_no_guard(SIZE);
}
