// The library's own state in a child.
#include "tests.h"
#include <stdatomic.h>

static void need_library(void) {
    if (mode_is("bare"))
        SKIP("without the library there is no governor and no cache");
}

TEST("a forked child starts without a governor, counts its own ticks, and can get one; its parent's governor runs on") {
    need_library();
    start_governor();
    while (statistic("governor", "ticks") == 0)
        sleep_ms(10);
    for (int round = 0; round < 2; round++)
        IN_CHILD {
            CHECK(count_threads("flarena") == 0, "the child has a governor at its start");
            CHECK(statistic("governor", "ticks") == 0, "the child counts its parent's governor");
            start_governor();
            await_rss_below(60 * MB, 30);
        }
    CHECK(count_threads("flarena") == 1, "%d governor threads", count_threads("flarena"));
}

TEST("a child of vfork that allocates much starts no governor, and its parent can start one afterwards") {
    need_library();
    // As an interpreter may do between vfork and exec, in the memory of its parent.
    pid_t child = vfork();
    if (child == 0) {
        for (int i = 0; i < 8; i++) {
            void *block = malloc(64 * MB);
            if (block == NULL)
                _exit(1);
            memset(block, 1, 64 * KB);
            free(block);
        }
        free_most(small_heap(150 * MB));
        _exit(count_threads("flarena"));
    }
    CHECK_CHILD(child);
    CHECK(count_threads("flarena") == 0, "%d governor threads", count_threads("flarena"));
    start_governor();
}

enum { FREED_MB = 20, MOST_LOCKED_MB = 1 };

TEST("a child of a process that locked all its memory caches as much as any other process, for it inherits no locks") {
    need_library();
    char *kept = malloc_touched(FREED_MB * MB, 1);
    if (mlockall(MCL_CURRENT) != 0)
        SKIP("this user may not lock memory");
    IN_CHILD {
        // The limit holds only for a user without CAP_IPC_LOCK.
        struct rlimit most = {MOST_LOCKED_MB * MB, MOST_LOCKED_MB * MB};
        CHECK(setrlimit(RLIMIT_MEMLOCK, &most) == 0 && (geteuid() != 0 || seteuid(65534) == 0), "%s", strerror(errno));
        CHECK(proc_number("status", "VmLck") == 0, "%ld", proc_number("status", "VmLck"));
        free(kept);
        long long cached = statistic("recycler", "cached_bytes");
        CHECK(cached >= (long)((FREED_MB - 2) * MB), "%lld bytes cached in the child", cached);
    }
}

static atomic_int stop;

static void *churn(void *unused) {
    char *block[1] = {0};
    while (!atomic_load(&stop))
        replace_random(block, 1, MB, 7 * MB);
    free(*block);
    return unused;
}

static void check_cache_of_child(char *inherited) {
    IN_CHILD {
        CHECK(inherited[10 * MB - 1] == 6);
        free(inherited);
        free(malloc_touched(2 * MB, 2));
        // Only the 12 MB that the child has freed.
        long long cached = statistic("recycler", "cached_bytes");
        CHECK(cached <= (long)(14 * MB), "%lld bytes cached in the child", cached);
    }
}

TEST("a child forked while other threads allocate has its parent's blocks and none of its cached pages") {
    need_library();
    restart_with_slow_decay();
    pthread_t threads[3];
    char *kept = malloc_touched(10 * MB, 6);
    allocate_and_free(10, 4 * MB);
    CHECK(statistic("recycler", "cached_bytes") > (long)(20 * MB), "%lld", statistic("recycler", "cached_bytes"));
    check_cache_of_child(kept);
    start_threads(threads, COUNT(threads), churn);
    for (int round = 0; round < 40; round++)
        check_cache_of_child(kept);
    atomic_store(&stop, 1);
    join_threads(threads, COUNT(threads));
    CHECK(kept[10 * MB - 1] == 6);
    free(kept);
}
