// after a fork with cached pages, parent and child reuse memory and never see each other's bytes
#include "check.h"

static void reuse(unsigned seed) {
    for (unsigned round = 0; round < 20; round++) {
        void *blocks[4];
        for (unsigned i = 0; i < 4; i++) {
            size_t size = (i + 2) * MB + 777;
            blocks[i] = round % 2 ? malloc(size) : calloc(1, size);
            if (round % 2 == 0)
                CHECK(first_nonzero(blocks[i], size) == size, "calloc returned dirty memory");
            fill(blocks[i], size, seed + round + i);
        }
        usleep(500);
        for (unsigned i = 0; i < 4; i++) {
            size_t size = (i + 2) * MB + 777;
            CHECK(first_mismatch(blocks[i], size, seed + round + i) == size, "bytes changed");
            free(blocks[i]);
        }
    }
}

int main(void) {
    void *freed[8], *shared = malloc(10 * MB);
    for (int i = 0; i < 8; i++) {
        freed[i] = malloc(5 * MB);
        memset(freed[i], 0xff, 5 * MB);
    }
    fill(shared, 10 * MB, 99);
    for (int i = 0; i < 8; i++)
        free(freed[i]);
    pid_t children[3];
    for (unsigned i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            reuse(i * 1000);
            CHECK(first_mismatch(shared, 10 * MB, 99) == 10 * MB, "the inherited block changed");
            shared = realloc(shared, 20 * MB);
            fill(shared, 20 * MB, i);
            free(shared);
            exit(0);
        }
    }
    reuse(9000);
    for (int i = 0; i < 3; i++) {
        int status;
        waitpid(children[i], &status, 0);
        CHECK(status == 0, "child %d: status %x", i, status);
    }
    CHECK(first_mismatch(shared, 10 * MB, 99) == 10 * MB, "a child changed the parent's block");
    free(shared);
}
