// a panic in a call that reports makes the call fail, is reported in one line, and does not end the program
#include "check.h"

// A build with the feature `defect` panics at these stages: at "defect" inside the call, at "defect elsewhere" as if
// outside of a call that reports, at "defect with the lock" while the thread holds the recycler's lock.
int main(int argc, char **argv) {
    if (argc > 1) return flarena_mark(argv[1], NULL, 0);
    char *block = malloc(5 * MB);
    fill(block, 5 * MB, 7);
    for (int round = 0; round < 3; round++) {
        errno = 0;
        CHECK(flarena_mark("defect", NULL, round) == -1, "the marker of round %d was written", round);
        CHECK(errno == ENOTRECOVERABLE, "%s", strerror(errno));
    }
    CHECK(first_mismatch(block, 5 * MB, 7) == 5 * MB, "a byte was lost");
    free(block);
    CHECK(flarena_mark("well", NULL, 9) == 0, "%s", strerror(errno));
    CHECK(flarena_trim() >= 0, "flarena_trim failed");
    char answer[16 * KB];
    CHECK(flarena_stats_json(answer, sizeof answer) > 100, "flarena_stats_json failed");
}
