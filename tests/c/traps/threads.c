// Threads, their signals, and libraries that come and go.
#include "tests.h"
#include <stdatomic.h>

static void *work(void *unused) {
    char text[64];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(text, sizeof text, "%c", &local);
    free(strdup(strerror(ENOENT)));
    for (int i = 0; i < 50; i++)
        free(malloc((size_t)i * 100 + 1));
    free(malloc(2 * MB));
    return unused;
}

static void generation(void) {
    pthread_t threads[20];
    start_threads(threads, COUNT(threads), work);
    join_threads(threads, COUNT(threads));
}

TEST("1200 threads that use thread-local buffers of libc and end leave less than 6 MB behind") {
    // qemu's user mode keeps memory for each thread that has ended
    for (int i = 0; i < 20; i++)
        generation();
    long before = rss_bytes();
    for (int i = 0; i < 60; i++)
        generation();
    CHECK(rss_bytes() - before < (long)(6 * MB), "%ld bytes resident before, %ld after 1200 more threads", before, rss_bytes());
}

static void *allocate(void *size) {
    void *block = malloc((size_t)size);
    fill(block, (size_t)size, 3);
    return block;
}

TEST("blocks of a thread that has ended can be read, resized and freed by other threads") {
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            pthread_t thread;
            void *block;
            pthread_create(&thread, NULL, allocate, (void *)SIZES[i]);
            pthread_join(thread, &block);
            CHECK(first_mismatch(block, SIZES[i], 3) == SIZES[i], "a block of %zu", SIZES[i]);
            block = realloc(block, SIZES[i] + SIZES[i] / 2);
            CHECK(first_mismatch(block, SIZES[i], 3) == SIZES[i], "a block of %zu after realloc", SIZES[i]);
            free(block);
        }
}

TEST("a signal for the process reaches the program's thread that waits for it, not a thread of the library") {
    // Enough memory to start the governor.
    char *held[40];
    for (size_t i = 0; i < COUNT(held); i++)
        held[i] = malloc_touched(3 * MB, 1);
    await_governor();
    sigset_t usr1 = mask_signal(SIG_BLOCK, SIGUSR1);
    for (int i = 0; i < 100; i++) {
        struct timespec second = {1, 0};
        kill(getpid(), SIGUSR1); // kills the process if a thread has it unblocked
        CHECK(sigtimedwait(&usr1, NULL, &second) == SIGUSR1, "the signal was not delivered: %s", strerror(errno));
    }
    for (size_t i = 0; i < COUNT(held); i++)
        free(held[i]);
}

static atomic_int stop;

static void *purge_tails(void *unused) {
    while (atomic_load(&stop) == 0)
        malloc_trim(0);
    return unused;
}

TEST("realloc in a real-time thread does not spin while a thread of lower priority purges the block's tail") {
    // qemu's user mode has no real-time threads
    static char *blocks[64];
    pthread_t thread;
    struct sched_param priority = {.sched_priority = 10};
    run_on_cpu(sched_getcpu());
    start_threads(&thread, 1, purge_tails);
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
        SKIP("this user may not start real-time threads");
    double most = 0;
    for (double end = clock_seconds(CLOCK_MONOTONIC) + 4; clock_seconds(CLOCK_MONOTONIC) < end;) {
        for (size_t i = 0; i < COUNT(blocks); i++) {
            free(blocks[i]);
            blocks[i] = realloc(malloc_touched(3 * MB, 1), 2 * MB + 100 * KB);
        }
        for (size_t i = 0; i < COUNT(blocks); i++) {
            usleep(200);
            double before = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
            blocks[i] = realloc(blocks[i], 2 * MB + 50 * KB + i % 7 * 3 * PAGE);
            double spent = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
            most = spent > most ? spent : most;
        }
    }
    atomic_store(&stop, 1);
    // A thread that spins does so until the kernel throttles it, after almost a second.
    CHECK(most < 0.3, "a realloc took %.3f s of CPU time", most);
}

TEST("libraries that allocate in constructors and free in destructors can be loaded and unloaded again and again") {
    // Libraries that most systems with glibc have; some load others.
    const char *names[] = {"libm.so.6", "libresolv.so.2", "libnss_files.so.2", "libstdc++.so.6", "libgcc_s.so.1"};
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < COUNT(names); i++) {
            void *library = dlopen(names[i], round % 2 ? RTLD_NOW : RTLD_LAZY);
            if (library == NULL)
                continue;
            free(malloc(3 * MB));
            CHECK(dlclose(library) == 0, "dlclose(%s): %s", names[i], dlerror());
        }
    CHECK(dlopen("no such library", RTLD_NOW) == NULL && dlerror() != NULL, "a missing library was loaded");
}
