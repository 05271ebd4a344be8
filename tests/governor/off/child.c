// with FLARENA_GOVERNOR=off a forked child has no governor either, and purges large blocks during its own calls
#include "check.h"

#include <sys/wait.h>

static void allocate_and_free(void) {
    char *blocks[5];
    for (int block = 0; block < 5; block++)
        blocks[block] = malloc_touched(20 * MB, 1);
    for (int block = 0; block < 5; block++)
        free(blocks[block]);
    long long cached = statistic("recycler", "cached_bytes");
    CHECK(cached <= (long long)(16 * MB), "%lld bytes cached", cached);
    CHECK(count_threads(NULL) == 1, "%d threads", count_threads(NULL));
}

int main(void) {
    allocate_and_free();
    pid_t child = fork();
    if (child == 0) {
        allocate_and_free();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child: %d", status);
    return 0;
}
