// a child forked while other threads allocate has its parent's blocks and none of its cached pages
#include "check.h"
#include <stdatomic.h>

static atomic_int stop;

static void *churn(void *argument) {
    unsigned seed = (unsigned)(size_t)argument;
    while (!atomic_load(&stop))
        free(malloc_touched(MB + (size_t)(rand_r(&seed) % 700) * 10000, 1));
    return NULL;
}

static void cache_much(void) {
    allocate_and_free(10, 4 * MB);
    CHECK(statistic("recycler", "cached_bytes") > (long)(20 * MB), "%lld", statistic("recycler", "cached_bytes"));
}

static void child(char *inherited) {
    alarm(20); // if a lock stays locked in the child, the test fails instead of hanging
    CHECK(inherited[10 * MB - 1] == 6);
    free(inherited);
    free(malloc_touched(2 * MB, 2));
    long long cached = statistic("recycler", "cached_bytes");
    // Only the 12 MB that the child has freed.
    CHECK(cached <= (long)(14 * MB), "%lld bytes cached in the child", cached);
    _exit(0);
}

static void fork_once(char *inherited) {
    pid_t pid = fork();
    if (pid == 0)
        child(inherited);
    CHECK_CHILD(pid);
}

int main(void) {
    if (mode_is("bare"))
        SKIP("without the library there is no such cache");
    restart_with_slow_decay();
    char *kept = malloc_touched(10 * MB, 6);
    cache_much();
    fork_once(kept);
    pthread_t threads[3];
    start_threads(threads, COUNT(threads), churn);
    for (int round = 0; round < 40; round++)
        fork_once(kept);
    atomic_store(&stop, 1);
    join_threads(threads, COUNT(threads));
    CHECK(kept[10 * MB - 1] == 6);
    free(kept);
}
