// a locked block stays while the others go out
#include "hibernate.h"

int main(void) {
    uint64_t *locked = random_block(64 * MB, 7), *other = random_block(64 * MB, 8);
    if (mlock(locked, 64 * MB) != 0)
        SKIP("no memory may be locked here");
    await_out(60);
    sleep_ms(1000);
    is_resident(locked, 64 * MB);
    holds(other, 64 * MB, 8);
    return 0;
}
