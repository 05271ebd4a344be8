// a child forked while the blocks are in swap can read them, and so can its parent
#include "hibernate.h"

int main(void) {
    uint64_t *block = random_block(64 * MB, 7);
    await_swapped(60);
    pid_t child = fork();
    if (child == 0) {
        CHECK(hibernated_mb() <= 0, "the child reports %ld MB as hibernated", hibernated_mb());
        check_words(block, 64 * MB, 7);
        block[0] = 0;
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child's status is %x", status);
    check_words(block, 64 * MB, 7);
    return 0;
}
