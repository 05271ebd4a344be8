// blocks of 5 and 12 GB of which few pages are touched can be allocated, grown, shrunk and freed
// qemu's user mode keeps a resident table of all pages of a block
#include "check.h"

int main(void) {
    for (int round = 0; round < 3; round++) {
        char *block = malloc(5 * GB);
        if (block == NULL)
            SKIP("this machine does not grant 5 GB of address space");
        block[0] = 1;
        block[5 * GB - 1] = 2;
        char *grown = realloc(block, 12 * GB);
        if (grown == NULL)
            SKIP("this machine does not grant 12 GB of address space");
        CHECK(grown[0] == 1 && grown[5 * GB - 1] == 2, "an end was lost");
        grown[12 * GB - 1] = 3;
        char *shrunk = realloc(grown, 3 * MB);
        CHECK(shrunk != NULL && shrunk[0] == 1, "the shrunk block lost its first byte");
        CHECK(rss_bytes() < (long)(64 * MB), "%ld bytes resident", rss_bytes());
        free(shrunk);
    }
}
