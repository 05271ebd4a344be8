// a panic in the governor is reported in one line, and the program continues without a governor
#include "check.h"
#include "flarena.h"

static int governor_is_running(void) { return statistic("governor", "running") == 1; }

int main(void) {
    char *block = malloc_touched(100 * MB, 7);
    CHECK(flarena_mark("start", NULL, 0) == 0, "%s", strerror(errno));
    await_governor();
    CHECK(governor_is_running(), "the governor did not start");
    // A build with the feature `defect` panics at the governor's next tick.
    CHECK(flarena_mark("defect in the governor", NULL, 1) == 0, "%s", strerror(errno));
    for (int tenth = 0; tenth < 200 && governor_is_running(); tenth++)
        sleep_ms(100);
    CHECK(!governor_is_running(), "the governor did not panic");
    for (int tenth = 0; tenth < 100 && count_threads("flarena") > 0; tenth++)
        sleep_ms(100);
    CHECK(count_threads("flarena") == 0, "the thread that panicked stays");
    CHECK(block[0] == 7 && block[100 * MB - 1] == 7, "a byte was lost");
    free(block);
    pid_t child = fork();
    if (child == 0) {
        free(malloc_touched(5 * MB, 3));
        _exit(flarena_mark("child", NULL, 2) == 0 ? 0 : 1);
    }
    CHECK_CHILD(child);
    CHECK(flarena_mark("well", NULL, 3) == 0, "%s", strerror(errno));
    CHECK(flarena_trim() >= 0, "flarena_trim failed");
}
