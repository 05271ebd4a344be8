// with FLARENA_GOVERNOR=off a forked child has no governor either, and purges large blocks during its own calls
#include "check.h"

static void check_purge(void) {
    allocate_and_free(5, 20 * MB);
    long long cached = statistic("recycler", "cached_bytes");
    CHECK(cached <= (long long)(16 * MB), "%lld bytes cached", cached);
    CHECK(count_threads(NULL) == 1, "%d threads", count_threads(NULL));
}

int main(void) {
    check_purge();
    run_in_child(check_purge);
}
