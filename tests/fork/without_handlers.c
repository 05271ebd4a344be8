// a child of clone or _Fork, which run no fork handlers, returns what it frees, and its dlclose and prctl do not wait
#include "check.h"

// The library waits 10 s for a thread that does not end. A busy machine may stop this process for some seconds.
enum { MOST_SECONDS = 6 };

static void child(void) {
    allocate_and_free(40, 8 * MB);
    // In a process without a governor the program's calls purge old pages.
    sleep_ms(1000);
    for (int index = 0; index < 64; index++)
        free(malloc_touched(600 * KB, 1));
    CHECK(rss_bytes() < (long)(60 * MB), "%ld MB are resident", rss_bytes() >> 20);
    double start = clock_seconds(CLOCK_MONOTONIC);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS: %d", errno);
    CHECK(clock_seconds(CLOCK_MONOTONIC) - start < MOST_SECONDS, "prctl took %.1f s", clock_seconds(CLOCK_MONOTONIC) - start);
    _exit(0);
}

static void check_child(pid_t pid) {
    if (pid == 0)
        child();
    int status = await_child(pid);
    CHECK(status == 0, "status %#x", status);
}

static pid_t copy(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

// The parent's governor is at work in some of the moments.
static void check_dlclose(void) {
    for (int round = 0; round < 15; round++) {
        allocate_and_free(40, 4 * MB + (size_t)round * 128 * KB);
        sleep_ms(300 + round % 7 * 3);
        for (int copies = 0; copies < 5; copies++) {
            pid_t pid = copy();
            if (pid == 0) {
                double start = clock_seconds(CLOCK_MONOTONIC);
                void *library = dlopen("libm.so.6", RTLD_NOW);
                CHECK(library != NULL && dlclose(library) == 0, "%s", dlerror());
                CHECK(clock_seconds(CLOCK_MONOTONIC) - start < MOST_SECONDS, "dlclose took %.1f s", clock_seconds(CLOCK_MONOTONIC) - start);
                _exit(0);
            }
            CHECK_CHILD(pid);
            sleep_ms(1);
        }
    }
}

int main(void) {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0)
        SKIP("the kernel lacks MADV_WIPEONFORK");
    // The first child has a parent without a governor.
    check_child(copy());
    for (int round = 0; round < 3; round++)
        free(malloc_touched(100 * MB, 1));
    if (!mode_is("bare"))
        await_governor();
    check_child(copy());
    pid_t (*copy_by_libc)(void);
    *(void **)&copy_by_libc = dlsym(RTLD_DEFAULT, "_Fork");
    if (copy_by_libc != NULL)
        check_child(copy_by_libc());
    check_dlclose();
    if (!mode_is("bare"))
        CHECK(statistic("governor", "running") == 1, "the parent's governor has stopped");
}
