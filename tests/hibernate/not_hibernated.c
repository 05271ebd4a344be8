// nothing goes to swap
#include "hibernate.h"

int main(void) {
    uint64_t *block = random_block(64 * MB, 7);
    await_governor();
    sleep_ms(3000);
    CHECK(swapped_mb() <= 0, "%ld MB are in swap", swapped_mb());
    CHECK(hibernated_mb() <= 0, "%ld MB hibernated", hibernated_mb());
    check_words(block, 64 * MB, 7);
    return 0;
}
