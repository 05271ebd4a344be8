// Trims of several threads at once, and a fork during a trim.
#include "tests.h"
#include <stdatomic.h>

enum { BLOCKS = 20000 };

static atomic_int stop;

static void *trim(void *unused) {
    while (!atomic_load(&stop))
        malloc_trim(0);
    return unused;
}

// Allocates so many blocks of 4 KB, frees them, and trims. Returns by how many bytes RSS fell.
static long freed_by_trim(char **blocks, int count) {
    for (int i = 0; i < count; i++)
        blocks[i] = malloc_touched(4000, 1);
    long full = rss_bytes();
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    malloc_trim(0);
    return full - rss_bytes();
}

static void *churn_and_trim(void *unused) {
    static char *blocks[BLOCKS];
    while (!atomic_load(&stop))
        freed_by_trim(blocks, BLOCKS);
    return unused;
}

static void check_trim(void) {
    static char *blocks[BLOCKS];
    long freed = freed_by_trim(blocks, BLOCKS);
    CHECK(freed > 60l << 20, "%ld MB of 76", freed >> 20);
}

TEST("a trim returns all that is free, also while another thread trims") {
    pthread_t thread;
    start_threads(&thread, 1, trim);
    for (int round = 0; round < 10; round++)
        check_trim();
    atomic_store(&stop, 1);
    join_threads(&thread, 1);
}

TEST("a child that is forked during a trim of its only arena can trim") {
    restart_with("MALLOC_CONF", "narenas:1,dirty_decay_ms:-1");
    pthread_t thread;
    start_threads(&thread, 1, churn_and_trim);
    for (int round = 0; round < 20; round++) {
        sleep_ms(3 + round % 7);
        IN_CHILD {
            check_trim();
            exit(0);
        }
    }
    atomic_store(&stop, 1);
    join_threads(&thread, 1);
}
