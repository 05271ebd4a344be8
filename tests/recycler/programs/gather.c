// A large block is gathered from the pages of smaller ones, and the peak stays what is really held
#include "recycler.h"

int main(void)
{
    char *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = touched(4 * MIB, 1);
    long long peak = status_bytes("VmHWM:");
    for (int i = 0; i < 100; i += 2)
        free(blocks[i]);
    char *large = touched(200 * MIB, 2);
    CHECK(status_bytes("VmHWM:") <= peak + (long long)(34 * MIB));
    CHECK(recycler_number("moved_bytes_total") >= (long long)(150 * MIB));
    for (int i = 1; i < 100; i += 2)
        CHECK(blocks[i][4 * MIB - 1] == 1 && blocks[i][0] == 1);
    free(large);
}
