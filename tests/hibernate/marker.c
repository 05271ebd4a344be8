// a marker of the program brings its blocks back, and reports how much was hibernated
#include "flarena.h"
#include "hibernate.h"

int main(void) {
    uint64_t *block = random_block(64 * MB, 7);
    await_swapped(60);
    await_hibernated(60);
    flarena_mark("receive", "site-1", 3);
    await_resident(4);
    check_words(block, 64 * MB, 7);
    return 0;
}
