// An idle process gives its cached pages back by itself
#include "recycler.h"

int main(void)
{
    for (int round = 0; round < 20; round++)
        free(touched(100 * MIB, 1));
    for (int tenths = 0; tenths < 50; tenths++) {
        usleep(100 * 1000);
        if (status_bytes("VmRSS:") < (long long)(24 * MIB))
            return 0;
    }
    CHECK(!"the pages went back within five seconds");
}
