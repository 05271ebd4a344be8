// A flag that covers two neighbouring blocks exactly is found all the same
#include "recycler.h"

int main(void)
{
    for (int round = 0; round < 50; round++) {
        char *blocks[8];
        for (int i = 0; i < 8; i++) {
            blocks[i] = touched(4 * MIB, 1);
            CHECK(mprotect(blocks[i], 4 * MIB, PROT_READ) == 0);
        }
        for (int i = 0; i < 8; i++)
            free(blocks[(i * 3 + round) % 8]);
        for (int i = 0; i < 8; i++)
            blocks[i] = touched(4 * MIB, 2);
        for (int i = 0; i < 8; i++)
            free(blocks[i]);
    }
}
