// shared memory that a program mapped into its block stays in memory when the large blocks go to swap
#include "hibernate.h"

int main(void) {
    uint64_t *block = random_block(64 * MB, 7), *other = random_block(64 * MB, 8);
    char *shared = mmap(block, 8 * MB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(shared != MAP_FAILED, "mmap: %s", strerror(errno));
    touch(shared, 8 * MB, 1);
    await_swapped(110);
    sleep_ms(1000);
    check_resident(shared, 8 * MB);
    check_words(other, 64 * MB, 8);
    return 0;
}
