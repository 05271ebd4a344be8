// a mark of the program's brings its blocks back, and says how much was out
#include "flarena.h"
#include "hibernate.h"

int main(void) {
    uint64_t *block = random_block(64 * MB, 7);
    await_out(60);
    await_hibernated(60);
    flarena_mark("receive", "site-1", 3);
    await_back(4);
    holds(block, 64 * MB, 7);
    return 0;
}
