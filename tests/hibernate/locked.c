// a locked block stays in memory when the other blocks go to swap
#include "hibernate.h"

int main(void) {
    uint64_t *locked = random_block(64 * MB, 7), *other = random_block(64 * MB, 8);
    if (mlock(locked, 64 * MB) != 0)
        SKIP("this user may not lock memory");
    await_swapped(60);
    sleep_ms(1000);
    check_resident(locked, 64 * MB);
    check_words(other, 64 * MB, 8);
    return 0;
}
