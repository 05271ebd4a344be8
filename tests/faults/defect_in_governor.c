// a panic in the governor is reported in one line, and the program continues without a governor
#include "check.h"

static int governor_is_running(void) { return statistic("governor", "running") == 1; }

int main(void) {
    char *block = malloc_touched(100 * MB, 7);
    CHECK(flarena_mark("start", NULL, 0) == 0, "%s", strerror(errno));
    await_governor();
    CHECK(governor_is_running(), "the governor did not start");
    // A build with the feature `defect` panics at the governor's next tick.
    CHECK(flarena_mark("defect in the governor", NULL, 1) == 0, "%s", strerror(errno));
    AWAIT(20, !governor_is_running(), "the governor did not panic");
    AWAIT(10, count_threads("flarena") == 0, "the thread that panicked stays");
    CHECK(block[0] == 7 && block[100 * MB - 1] == 7, "a byte was lost");
    free(block);
    IN_CHILD {
        free(malloc_touched(5 * MB, 3));
        CHECK(flarena_mark("child", NULL, 2) == 0, "%s", strerror(errno));
    }
    CHECK(flarena_mark("well", NULL, 3) == 0, "%s", strerror(errno));
    CHECK(flarena_trim() >= 0, "flarena_trim failed");
}
