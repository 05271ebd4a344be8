// With FLARENA_GOVERNOR=off.
#include "tests.h"

TEST("without a governor freed blocks are purged in the program's calls: most at once, the rest when they are old") {
    restart_with("FLARENA_GOVERNOR", "off");
    allocate_and_free(10, 20 * MB);
    long long cached = statistic("recycler", "cached_bytes");
    CHECK(cached <= (long long)(16 * MB), "%lld bytes cached after the frees", cached);
    sleep_ms(600);
    // Any call purges old pages; this one is too small to need the cached blocks.
    free(malloc_touched(1 * MB, 1));
    cached = statistic("recycler", "cached_bytes");
    CHECK(cached <= (long long)(2 * MB), "%lld bytes cached after a later call", cached);
    CHECK(rss_bytes() < (long)(20 * MB), "%ld bytes resident", rss_bytes());
}

TEST("without a governor a forked child has none either, and purges large blocks during its own calls") {
    restart_with("FLARENA_GOVERNOR", "off");
    allocate_and_free(5, 20 * MB);
    IN_CHILD {
        allocate_and_free(5, 20 * MB);
        long long cached = statistic("recycler", "cached_bytes");
        CHECK(cached <= (long long)(16 * MB), "%lld bytes cached", cached);
        CHECK(count_threads(NULL) == 1, "%d threads", count_threads(NULL));
    }
}

static int enter_user_namespace(void) {
    return unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}

TEST("without a governor a large process has no extra thread, and can enter a user namespace") {
    restart_with("FLARENA_GOVERNOR", "off");
    // First without any memory: does this system allow it at all?
    pid_t child = fork();
    if (child == 0)
        _exit(enter_user_namespace());
    int status = await_child(child);
    free_most(small_heap(100 * MB));
    for (int round = 0; round < 100; round++)
        free(malloc_touched(20 * MB, 1));
    sleep_ms(300);
    CHECK(count_threads(NULL) == 1, "%d threads", count_threads(NULL));
    CHECK(!statistic("governor", "running"), "the statistics report a running governor");
    if (status != 0)
        SKIP("user namespaces are not allowed here");
    int error = enter_user_namespace();
    CHECK(error == 0, "unshare: %s", strerror(error));
}
