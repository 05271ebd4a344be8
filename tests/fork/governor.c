// a forked child starts without a governor, counts its own ticks, and can get one; the parent's governor keeps running
#include "check.h"

static void child(void) {
    CHECK(count_threads("flarena") == 0, "the child has a governor at its start");
    CHECK(statistic("governor", "ticks") == 0, "the child counts its parent's governor");
    start_governor();
    await_rss_below(60 * MB, 30);
}

int main(void) {
    if (mode_is("bare"))
        SKIP("without the library there is no governor");
    start_governor();
    while (statistic("governor", "ticks") == 0)
        sleep_ms(10);
    run_in_child(child);
    run_in_child(child);
    CHECK(count_threads("flarena") == 1, "%d governor threads", count_threads("flarena"));
}
