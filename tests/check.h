// The harness of every C and C++ test program: the headers of libc that they need, assertions with values, test blocks,
// threads, and numbers of the kernel and of the library. A constructor checks that malloc belongs to the mode that the
// suite requested: TEST_MODE is glibc, jemalloc, or bare (no preload).
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../include/flarena.h"

#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)
#define GB ((size_t)1 << 30)
#define PAGE ((size_t)sysconf(_SC_PAGESIZE)) // arm64 kernels have 4, 16 or 64 KiB
#define COUNT(array) (sizeof(array) / sizeof *(array))

// CHECK(condition[, "value %s", seen]): prints both and exits 1 if the condition is false.
#define CHECK(condition, ...)                                                             \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            dprintf(2, "%s:%d: check failed: %s;", __FILE__, __LINE__, #condition);       \
            dprintf(2, " " __VA_ARGS__);                                                  \
            dprintf(2, "\n");                                                             \
            _exit(1);                                                                     \
        }                                                                                 \
    } while (0)

// CHECK_ENOMEM(size, malloc(size)): the call returns NULL and sets errno to ENOMEM.
#define CHECK_ENOMEM(size, call)                                                          \
    do {                                                                                  \
        errno = 0;                                                                        \
        void *unexpected_block = (call);                                                  \
        CHECK(unexpected_block == NULL && errno == ENOMEM, #call " = %p, errno %d, size %zx",\
              unexpected_block, errno, (size_t)(size));                                   \
    } while (0)

// CHECK_CHILD(pid): the child ends with status 0, or by SKIP, which skips the test.
#define CHECK_CHILD(child)                                                                \
    do {                                                                                  \
        int child_status = -1;                                                            \
        pid_t ended = waitpid(child, &child_status, 0);                                   \
        if (WIFEXITED(child_status) && WEXITSTATUS(child_status) == SKIPPED)              \
            _exit(SKIPPED);                                                               \
        CHECK(ended == (child) && child_status == 0, "status %#x", (unsigned)child_status);\
    } while (0)

// IN_CHILD { ... }: a forked child runs the block, and ends with status 0. IN_CHILD_OF(copy()): another way to copy the
// process.
#define IN_CHILD_OF(copy) for (pid_t copied = copy; copied == 0 || ({ CHECK_CHILD(copied); 0; }); _exit(0))
#define IN_CHILD IN_CHILD_OF(fork())

// AWAIT(seconds, condition[, "value %s", seen]): the condition becomes true within this time.
#define AWAIT(seconds, condition, ...)                                                    \
    do {                                                                                  \
        for (int tenth = 0; tenth < (seconds) * 10 && !(condition); tenth++)              \
            sleep_ms(100);                                                                \
        CHECK(condition, __VA_ARGS__);                                                    \
    } while (0)

// SKIP("why"): this machine cannot show the behaviour. The suite counts a skip, not a failure.
#define SKIPPED 77
#define SKIP(why)                \
    do {                         \
        dprintf(2, "%s\n", why); \
        _exit(SKIPPED);          \
    } while (0)

// Sizes on both sides of each boundary: size classes, page, huge page, recycler.
static const size_t SIZES[] = {1, 8, 16, 24, 100, 1000, 4096, 5000, 64 * KB, 128 * KB, 1 * MB - 1, 1 * MB,
                               2 * MB - 1, 2 * MB, 2 * MB + 1, 3 * MB + 12345, 33 * MB};

static inline int mode_is(const char *mode) {
    const char *asked = getenv("TEST_MODE");
    return asked != NULL && strcmp(asked, mode) == 0;
}

// A pattern that depends on seed and offset, so that moved or mixed bytes are detected.
static inline unsigned char pattern(size_t at, unsigned seed) {
    return (unsigned char)(at * 31 + (at >> 12) * 7 + seed * 131 + 1);
}

static inline void fill(void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at++)
        ((unsigned char *)block)[at] = pattern(at, seed);
}

// The offset of the first byte that differs from the pattern, or size if all bytes match.
static inline size_t first_mismatch(const void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at++)
        if (((const unsigned char *)block)[at] != pattern(at, seed))
            return at;
    return size;
}

// As fill, but one byte per page: enough for tests in which only whole pages can be lost.
static inline void stamp_pages(void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at += 4093)
        ((unsigned char *)block)[at] = pattern(at, seed);
}

static inline int pages_match(const void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at += 4093)
        if (((const unsigned char *)block)[at] != pattern(at, seed))
            return 0;
    return 1;
}

static inline size_t first_nonzero(const void *block, size_t size) {
    for (size_t at = 0; at < size; at++)
        if (((const unsigned char *)block)[at] != 0)
            return at;
    return size;
}

// Writes to each page of the block, so that all of it is resident.
static inline void touch(void *block, size_t bytes, char value) {
    for (size_t at = 0; at < bytes; at += 4096)
        ((char *)block)[at] = value;
    ((char *)block)[bytes - 1] = value;
}

static inline char *malloc_touched(size_t bytes, char value) {
    char *block = (char *)malloc(bytes);
    CHECK(block != NULL, "malloc(%zu): %s", bytes, strerror(errno));
    touch(block, bytes, value);
    return block;
}

// Touched blocks that live at the same time.
static inline void allocate_and_free(size_t count, size_t bytes) {
    char *blocks[100];
    CHECK(count <= COUNT(blocks), "%zu blocks", count);
    for (size_t i = 0; i < count; i++)
        blocks[i] = malloc_touched(bytes, 1);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

// Touched blocks in a list whose links lie inside the blocks, so that no large block is needed.
static inline void **heap_of_blocks(size_t bytes, size_t size) {
    void **head = NULL;
    for (size_t have = 0; have < bytes; have += size) {
        void **block = (void **)malloc(size);
        CHECK(block != NULL, "malloc(%zu) failed after %zu bytes", size, have);
        memset(block, 1, size);
        *block = head;
        head = block;
    }
    return head;
}

static inline void **small_heap(size_t bytes) {
    return heap_of_blocks(bytes, 100);
}

// Frees all blocks but one in a thousand: the survivors keep the heap from shrinking by itself.
static inline void free_most(void **head) {
    for (size_t index = 0; head != NULL; index++) {
        void **next = (void **)*head;
        if (index % 1000 != 0)
            free(head);
        head = next;
    }
}

// Frees a random one of the blocks, and allocates a new one of `least` to `least + range - 1` bytes.
static inline char *replace_random(char **blocks, size_t count, size_t least, size_t range) {
    static __thread unsigned random = 1;
    random = random * 1103515245 + 12345;
    char **block = &blocks[(random >> 8) % count];
    free(*block);
    *block = (char *)malloc(least + (random >> 4) % range);
    if (*block != NULL)
        **block = 1;
    return *block;
}

static inline void sleep_ms(long ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

// The time of a clock in seconds.
static inline double clock_seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Each thread gets its number, from 0.
static inline void start_threads(pthread_t *threads, size_t count, void *(*body)(void *)) {
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0, "no thread %zu", i);
}

// The calling thread runs on this processor only.
static inline void run_on_cpu(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity: %s", strerror(errno));
}

// Blocks or unblocks one signal in the calling thread. Returns the set of this signal.
static inline sigset_t mask_signal(int how, int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    CHECK(pthread_sigmask(how, &set, NULL) == 0, "pthread_sigmask");
    return set;
}

static inline void join_threads(const pthread_t *threads, size_t count) {
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

// The exit status of a child that ends within 30 seconds.
static inline int await_child(pid_t child) {
    int status = -1;
    for (int tenth = 0; tenth < 300 && waitpid(child, &status, WNOHANG) == 0; tenth++)
        sleep_ms(100);
    if (status == -1)
        kill(child, SIGKILL);
    CHECK(status != -1, "the process does not end");
    return status;
}

// The numbers in the names of a directory's files, such as /proc/self/task. Returns how many there are, at most `most`.
static inline size_t list_numbers(const char *directory, pid_t *numbers, size_t most) {
    size_t count = 0;
    DIR *list = opendir(directory);
    CHECK(list != NULL, "cannot open %s", directory);
    for (struct dirent *entry; count < most && (entry = readdir(list)) != NULL;)
        if (entry->d_name[0] != '.')
            numbers[count++] = atoi(entry->d_name);
    closedir(list);
    return count;
}

static inline int thread_has_name(pid_t thread, const char *name) {
    char path[64], seen[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    FILE *comm = fopen(path, "re");
    if (comm == NULL)
        return 0;
    if (fgets(seen, sizeof seen, comm) != NULL)
        seen[strcspn(seen, "\n")] = '\0';
    fclose(comm);
    return strcmp(seen, name) == 0;
}

enum { MOST_LISTED = 4096 };

// The number of threads of this process with this name, or of all threads if it is NULL.
static inline int count_threads(const char *name) {
    pid_t threads[MOST_LISTED];
    size_t all = list_numbers("/proc/self/task", threads, MOST_LISTED);
    int count = 0;
    for (size_t i = 0; i < all; i++)
        count += name == NULL || thread_has_name(threads[i], name);
    return count;
}

static inline void await_governor(void) {
    if (!mode_is("bare"))
        AWAIT(30, count_threads("flarena") == 1, "%d governor threads", count_threads("flarena"));
}

// Grows until the process has a governor. Without the library it only grows.
static inline void start_governor(void) {
    free_most(small_heap(100 * MB));
    await_governor();
}

// The text behind "Name:" in a line of /proc/self/FILE, or NULL if there is no such line.
static inline const char *proc_text(const char *file, const char *name) {
    static __thread char line[256];
    size_t length = strlen(name);
    const char *found = NULL;
    snprintf(line, sizeof line, "/proc/self/%s", file);
    FILE *lines = fopen(line, "re");
    while (lines != NULL && found == NULL && fgets(line, sizeof line, lines) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            found = line + length + 1;
    if (lines != NULL)
        fclose(lines);
    return found;
}

// The number of a "Name:  123 kB" line, in bytes if it has a unit; -1 if there is no such line.
static inline long proc_number(const char *file, const char *name) {
    const char *text = proc_text(file, name);
    return text == NULL ? -1 : atol(text) * (strstr(text, " kB") != NULL ? 1024 : 1);
}

// The most mappings that a process may have.
static inline size_t max_mappings(void) {
    size_t number = 0;
    FILE *limit = fopen("/proc/sys/vm/max_map_count", "re");
    CHECK(limit != NULL && fscanf(limit, "%zu", &number) == 1, "cannot read vm.max_map_count");
    fclose(limit);
    return number;
}

// Resident bytes, exact: smaps_rollup walks the page tables, /proc/self/status may lag.
static inline long rss_bytes(void) {
    long rss = proc_number("smaps_rollup", "Rss");
    return rss >= 0 ? rss : proc_number("status", "VmRSS");
}

static inline long cpu_us(void) {
    return (long)(clock_seconds(CLOCK_PROCESS_CPUTIME_ID) * 1e6);
}

// smaps_rollup costs milliseconds of CPU. At ten reads a second the governor would not take the program for idle,
// so the pause grows with the cost.
static inline void await_rss_below(long bytes, int seconds) {
    long waited_ms = 0, rss;
    for (;;) {
        long before = cpu_us();
        rss = rss_bytes();
        if (rss < bytes || waited_ms >= seconds * 1000)
            break;
        long pause_ms = 100 + (cpu_us() - before) / 10;
        sleep_ms(pause_ms);
        waited_ms += pause_ms;
    }
    CHECK(rss < bytes, "%ld MB resident after %d s, expected less than %ld", rss >> 20, seconds, bytes >> 20);
}

// A number or a boolean of flarena_stats_json: statistic("recycler", "live_bytes").
static inline long long statistic(const char *object, const char *name) {
    static char json[1 << 16];
    char quoted[64];
    CHECK(flarena_stats_json != NULL && flarena_stats_json(json, sizeof json) < (int)sizeof json, "no statistics");
    snprintf(quoted, sizeof quoted, "\"%s\":{", object);
    const char *found = strstr(json, quoted);
    CHECK(found != NULL, "no %s in %s", object, json);
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    found = strstr(found, quoted);
    CHECK(found != NULL, "no %s in %s", name, json);
    found += strlen(quoted);
    return strncmp(found, "true", 4) == 0 ? 1 : atoll(found);
}

static inline void await_statistic(const char *object, const char *name, long long least) {
    AWAIT(30, statistic(object, name) >= least, "%s.%s is %lld", object, name, statistic(object, name));
}

// Pages that are being purged count as cached until madvise returns.
static inline void await_empty_cache(void) {
    AWAIT(30, statistic("recycler", "cached_bytes") == 0, "%lld bytes cached", statistic("recycler", "cached_bytes"));
}

static inline size_t count_descriptors(void) {
    pid_t descriptors[MOST_LISTED];
    return list_numbers("/proc/self/fd", descriptors, MOST_LISTED);
}

// Restarts the program with this variable, unless it has the variable.
static inline void restart_with(const char *name, const char *value) {
    char program[] = "restarted", *again[] = {program, NULL};
    if (getenv(name) != NULL)
        return;
    setenv(name, value, 1);
    execv("/proc/self/exe", again);
    CHECK(0, "execv: %s", strerror(errno));
}

// Restarts the program under a resource limit, as a shell or a batch system sets it before the start.
static inline void restart_with_limit(int resource, rlim_t bytes) {
    struct rlimit limit = {bytes, RLIM_INFINITY};
    CHECK(getenv("LIMITED") != NULL || setrlimit((__rlimit_resource_t)resource, &limit) == 0, "setrlimit: %s", strerror(errno));
    restart_with("LIMITED", "1");
}

// Restarts the program with a decay time of a minute. With the default of 300 ms the pages that a test frees for the next
// block may be purged before that, where the thread waits for a processor.
static inline void restart_with_slow_decay(void) {
    restart_with("FLARENA_DECAY_MS", "60000");
}

static inline const char *library_of(void *address) {
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fname : "(nothing)";
}

static inline int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

#ifndef SKIP_OWNER_CHECK
__attribute__((constructor)) static void check_malloc_owner(void) {
    const char *owner = library_of(dlsym(RTLD_DEFAULT, "malloc"));
    if (mode_is("bare")) {
        CHECK(!ends_with(owner, "libflarena.so"), "malloc belongs to %s", owner);
        return;
    }
    CHECK(mode_is("glibc") || mode_is("jemalloc"), "TEST_MODE=%s", getenv("TEST_MODE"));
    CHECK(ends_with(owner, "libflarena.so"), "malloc belongs to %s", owner);
    CHECK(flarena_allocator != NULL, "no flarena_allocator");
    CHECK(mode_is(flarena_allocator()), "allocator %s in mode %s", flarena_allocator(), getenv("TEST_MODE"));
}
#endif
