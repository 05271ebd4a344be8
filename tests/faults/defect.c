// a defect of the library's in a call that reports ends the call, is told once, and the program goes on
#include "check.h"
#include "flarena.h"

// A build with the feature `defect` panics at marks of these names; the second as if outside of such a call.
int main(int argc, char **argv) {
    if (argc > 1) return flarena_mark(argv[1], NULL, 0);
    char *block = malloc(5 * MB);
    fill(block, 5 * MB, 7);
    for (int round = 0; round < 3; round++) {
        errno = 0;
        CHECK(flarena_mark("defect", NULL, round) == -1, "round %d was marked", round);
        CHECK(errno == ENOTRECOVERABLE, "%s", strerror(errno));
    }
    CHECK(first_mismatch(block, 5 * MB, 7) == 5 * MB, "a byte was lost");
    free(block);
    CHECK(flarena_mark("well", NULL, 9) == 0, "%s", strerror(errno));
    CHECK(flarena_trim() >= 0, "no trim");
    char answer[16 * KB];
    CHECK(flarena_stats_json(answer, sizeof answer) > 100, "no statistics");
    return 0;
}
