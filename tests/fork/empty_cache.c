// a child forked while other threads allocate has its parent's blocks and none of its cached pages
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

static atomic_int stop;

static void *churn(void *argument) {
    unsigned seed = (unsigned)(size_t)argument;
    while (!atomic_load(&stop))
        free(malloc_touched(MB + (size_t)(rand_r(&seed) % 700) * 10000, 1));
    return NULL;
}

static void cache_much(void) {
    char *blocks[10];
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = malloc_touched(4 * MB, 1);
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
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
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0)
        child(inherited);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child ended with status %x", status);
}

int main(int argc, char **argv) {
    (void)argc;
    if (mode_is("bare"))
        SKIP("without the library there is no such cache");
    restart_with_slow_decay(argv);
    char *kept = malloc_touched(10 * MB, 6);
    cache_much();
    fork_once(kept);
    pthread_t threads[3];
    for (size_t i = 0; i < COUNT(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    for (int round = 0; round < 40; round++)
        fork_once(kept);
    atomic_store(&stop, 1);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    CHECK(kept[10 * MB - 1] == 6);
    free(kept);
}
