// A block a little above one MiB costs its pages, not two MiB
#include "recycler.h"

int main(void)
{
    char *blocks[100];
    long long before = status_bytes("VmRSS:");
    for (int i = 0; i < 100; i++)
        blocks[i] = touched(MIB + MIB / 10, 1);
    CHECK(status_bytes("VmRSS:") < before + (long long)(118 * MIB));
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}
