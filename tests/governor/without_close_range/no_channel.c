// the governor keeps no descriptor open, so the process has no control channel
#include "../channel.h"

int main(void) {
    size_t before = count_descriptors();
    start_governor();
    sleep_ms(500);
    // The governor opens files for some microseconds, so one of several counts is without them.
    size_t after = count_descriptors();
    for (int attempt = 0; attempt < 10 && after != before; attempt++) {
        sleep_ms(20);
        after = count_descriptors();
    }
    CHECK(after == before, "%zu descriptors, before %zu", after, before);
    CHECK(connect_to(getpid(), start_ticks()) < 0, "the control channel is open");
}
