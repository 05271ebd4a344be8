// the recycler serves blocks of this size and larger ones only
#include "check.h"

// argv[1]: the smallest size that it must serve.
int main(int argc, char **argv) {
    size_t minimum = strtoul(argv[argc - 1], NULL, 10);
    free(malloc(1)); // the first block of a process is served before the backend exists
    long long live = statistic("recycler", "live_blocks");
    char *below = malloc_touched(minimum - 1, 1);
    CHECK(statistic("recycler", "live_blocks") == live, "the recycler serves a block of %zu", minimum - 1);
    char *from = malloc_touched(minimum, 1);
    CHECK(statistic("recycler", "live_blocks") == live + 1, "the recycler does not serve a block of %zu", minimum);
    free(below);
    free(from);
}
