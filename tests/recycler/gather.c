// a large block is gathered from the pages of freed smaller ones, so that the peak does not grow
#include "check.h"

int main(void) {
    restart_with_slow_decay();
    char *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc_touched(4 * MB, 1);
    long peak = proc_number("status", "VmHWM");
    for (int i = 0; i < 100; i += 2)
        free(blocks[i]);
    char *large = malloc_touched(200 * MB, 2);
    CHECK(proc_number("status", "VmHWM") <= peak + (long)(34 * MB));
    CHECK(statistic("recycler", "moved_bytes_total") >= (long)(150 * MB));
    for (int i = 1; i < 100; i += 2)
        CHECK(blocks[i][4 * MB - 1] == 1 && blocks[i][0] == 1);
    free(large);
}
