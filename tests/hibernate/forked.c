// a child that is forked while the blocks are out reads what was in them, and so does its parent
#include "hibernate.h"

int main(void) {
    uint64_t *block = random_block(64 * MB, 7);
    await_out(60);
    pid_t child = fork();
    if (child == 0) {
        CHECK(hibernated_mb() <= 0, "the child says that %ld MB are out", hibernated_mb());
        holds(block, 64 * MB, 7);
        block[0] = 0;
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child's status is %x", status);
    holds(block, 64 * MB, 7);
    return 0;
}
