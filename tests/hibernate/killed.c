// a program that is killed while it hibernates leaves nothing in swap
#include "hibernate.h"
#include <signal.h>

static long swap_free_mb(void) {
    long kilobytes = 0;
    char line[128];
    FILE *meminfo = fopen("/proc/meminfo", "re");
    CHECK(meminfo != NULL, "cannot open /proc/meminfo");
    while (fgets(line, sizeof line, meminfo) != NULL)
        sscanf(line, "SwapFree: %ld", &kilobytes);
    fclose(meminfo);
    return kilobytes >> 10;
}

int main(void) {
    long before = swap_free_mb();
    pid_t child = fork();
    if (child == 0) {
        random_block(256 * MB, 7);
        for (;;)
            pause();
    }
    for (int hundredth = 0; hundredth < 4000 && before - swap_free_mb() < 32; hundredth++)
        sleep_ms(10);
    CHECK(before - swap_free_mb() >= 32, "%ld MB are in swap", before - swap_free_mb());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int tenth = 0; tenth < 100 && before - swap_free_mb() > 16; tenth++)
        sleep_ms(100);
    CHECK(before - swap_free_mb() <= 16, "%ld MB are left in swap", before - swap_free_mb());
    return 0;
}
