// the governor keeps no descriptor open, so the process has no control channel
#include "../channel.h"

static int count_descriptors(void) {
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    while (readdir(list) != NULL)
        count++;
    closedir(list);
    return count;
}

int main(void) {
    int before = count_descriptors();
    free_most(small_heap(100 * MB));
    await_governor();
    sleep_ms(500);
    // The governor opens files for some microseconds, so one of several counts is without them.
    int after = count_descriptors();
    for (int attempt = 0; attempt < 10 && after != before; attempt++) {
        sleep_ms(20);
        after = count_descriptors();
    }
    CHECK(after == before, "%d descriptors, before %d", after, before);
    CHECK(connect_to(getpid(), start_ticks()) < 0, "the control channel is open");
    return 0;
}
