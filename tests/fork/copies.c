// Children of clone and _Fork, which run no fork handlers.
#include "governor/channel.h"
#include "tests.h"

extern pid_t _Fork(void) __attribute__((weak));

enum { COPIES = 16 };

static int use_malloc(void *unused) {
    for (size_t size = 1; size < 4 * MB; size = size * 3 / 2 + 1)
        free(malloc_touched(size, 1));
    _exit(0);
}

static pid_t copy_by_clone(void) {
    static char stack[256 << 10] __attribute__((aligned(64)));
    return clone(use_malloc, stack + sizeof stack, SIGCHLD, NULL);
}

// One trim after another, so that the governor nearly always is in one.
static void ask_for_trims(pid_t server, unsigned long long ticks) {
    for (;;) {
        char reply[4096];
        int fd = connect_to(server, ticks);
        if (fd >= 0 && write(fd, "trim\n", 5) == 5)
            while (read(fd, reply, sizeof reply) > 0)
                continue;
        close(fd);
    }
}

TEST("in a program with one thread a child of _Fork or clone uses malloc while the governor trims the heap") {
    // The heap keeps its size, and a trim looks at all of it.
    size_t index = 0;
    for (void **block = small_heap(80 * MB); block != NULL; index++) {
        void **next = (void **)*block;
        if (index % 3 == 0)
            free(block);
        block = next;
    }
    await_governor();
    pid_t asks = start_client(ask_for_trims);
    for (index = 0; index < COPIES; index++)
        IN_CHILD_OF(index % 2 == 0 || _Fork == NULL ? copy_by_clone() : _Fork()) use_malloc(NULL);
    end_client(asks);
}

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
}

static pid_t copy(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

// The parent's governor is at work in some of the moments.
static void check_dlclose(void) {
    for (int round = 0; round < 15; round++) {
        allocate_and_free(40, 4 * MB + (size_t)round * 128 * KB);
        sleep_ms(300 + round % 7 * 3);
        for (int copies = 0; copies < 5; copies++) {
            IN_CHILD_OF(copy()) {
                double start = clock_seconds(CLOCK_MONOTONIC);
                void *library = dlopen("libm.so.6", RTLD_NOW);
                CHECK(library != NULL && dlclose(library) == 0, "%s", dlerror());
                CHECK(clock_seconds(CLOCK_MONOTONIC) - start < MOST_SECONDS, "dlclose took %.1f s", clock_seconds(CLOCK_MONOTONIC) - start);
            }
            sleep_ms(1);
        }
    }
}

TEST("a child of clone or _Fork returns what it frees, and its dlclose and prctl do not wait") {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0)
        SKIP("the kernel lacks MADV_WIPEONFORK");
    // The first child has a parent without a governor.
    IN_CHILD_OF(copy()) child();
    for (int round = 0; round < 3; round++)
        free(malloc_touched(100 * MB, 1));
    await_governor();
    IN_CHILD_OF(copy()) child();
    IN_CHILD_OF(_Fork != NULL ? _Fork() : copy()) child();
    check_dlclose();
    CHECK(mode_is("bare") || statistic("governor", "running") == 1, "the parent's governor has stopped");
}
