// Limits on memory. Each test restarts the program with the limit.
#include "tests.h"

// Blocks of this size until malloc refuses one, and again after they are freed.
static void exhaust(size_t size, size_t limit) {
    static void *blocks[1 << 16];
    size_t count = 0;
    errno = 0;
    while (count < COUNT(blocks) && (blocks[count] = malloc(size)) != NULL) {
        memset(blocks[count], 1, 4096);
        count++;
    }
    CHECK(count > 0 && count < COUNT(blocks) && errno == ENOMEM, "%zu blocks of %zu, errno %d", count, size, errno);
    size_t addresses = count * ((size + 2 * MB - 1) / (2 * MB) * (2 * MB)); // a large block takes whole units
    CHECK(size < 1 * MB || addresses > limit / 8 * 5, "only %zu blocks of %zu below %zu", count, size, limit);
    CHECK(calloc(1, limit) == NULL, "calloc beyond the limit");
    if (count > 1) {
        fill(blocks[0], size, 3);
        void *none = realloc(blocks[0], limit);
        CHECK(none == NULL && first_mismatch(blocks[0], size, 3) == size, "realloc beyond the limit: %p", none);
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    void *again = malloc(size);
    CHECK(again != NULL, "malloc(%zu) after %zu frees: %s", size, count, strerror(errno));
    free(again);
    malloc_trim(0);
}

static void exhaust_each(size_t limit) {
    for (int round = 0; round < 3; round++) {
        exhaust(4 * MB, limit);
        exhaust(20 * MB, limit);
        exhaust(1 * MB, limit);
        exhaust(2 * MB + 1, limit);
        exhaust(100 * KB, limit);
    }
}

TEST("under a small RLIMIT_AS malloc returns NULL and ENOMEM, and works again after frees") {
    // qemu's user mode does not enforce RLIMIT_AS, so the test would take all memory of the machine
    restart_with_limit(RLIMIT_AS, 400 * MB);
    exhaust_each(400 * MB);
}

TEST("under a small RLIMIT_DATA malloc returns NULL and ENOMEM, and works again after frees") {
    // qemu's user mode does not enforce RLIMIT_DATA, so the test would take all memory of the machine
    restart_with_limit(RLIMIT_DATA, 160 * MB);
    exhaust_each(160 * MB);
}

static volatile int exhausted;

static void *first_allocation(void *number) {
    size_t size = (size_t[]){16, 1000, 20000, 100 * KB}[(long)number % 4];
    while (!exhausted)
        sleep_ms(1);
    for (int round = 0; round < 100; round++) {
        errno = 0;
        char *block = (long)number % 3 != 0 ? malloc(size) : calloc(1, size);
        CHECK(block != NULL || errno == ENOMEM, "errno %d", errno);
        if (block != NULL)
            memset(block, 1, size);
        free(block);
    }
    return NULL;
}

TEST("new threads whose first allocation finds no addresses left get NULL and ENOMEM") {
    // qemu's user mode does not enforce RLIMIT_AS
    restart_with_limit(RLIMIT_AS, 1000 * MB);
    pthread_t threads[16];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * KB);
    for (long i = 0; i < 16; i++)
        CHECK(pthread_create(&threads[i], &small, first_allocation, (void *)i) == 0, "thread %ld", i);
    // jemalloc reports on stderr that it has no memory for a thread's cache.
    int quiet = open("/dev/null", O_WRONLY);
    CHECK(dup2(quiet, 2) == 2, "dup2: %s", strerror(errno));
    // This thread allocates a small block, and then maps all remaining addresses.
    free(malloc(100));
    for (size_t size = 64 * MB; size >= 4096; size /= 2)
        while (mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            ;
    exhausted = 1;
    join_threads(threads, COUNT(threads));
}

TEST("a trim that would start the governor when addresses have run out does not crash") {
    // qemu's user mode does not enforce RLIMIT_AS
    restart_with_limit(RLIMIT_AS, 400 * MB);
    static char *blocks[1 << 12];
    size_t count = 0;
    // Untouched blocks are not resident, so the governor does not start yet.
    while (count < COUNT(blocks) && (blocks[count] = malloc(1 * MB)) != NULL)
        count++;
    CHECK(count > 100 && count < COUNT(blocks), "%zu blocks", count);
    for (size_t i = 0; i < 100; i++)
        memset(blocks[i], 1, 1 * MB);
    if (flarena_trim)
        flarena_trim();
    usleep(200 * 1000);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    char *again = malloc(32 * MB);
    CHECK(again != NULL, "malloc after %zu frees: %s", count, strerror(errno));
    free(again);
}

static const int RESOURCES[] = {RLIMIT_CORE, RLIMIT_AS, RLIMIT_DATA};
static volatile sig_atomic_t handled;

static void set_limits(int number) {
    for (size_t i = 0; i < COUNT(RESOURCES); i++) {
        struct rlimit limit;
        getrlimit(RESOURCES[i], &limit);
        setrlimit(RESOURCES[i], &limit);
    }
    handled++;
}

static void allocate(void) {
    struct rlimit limit = {8 * GB, 8 * GB};
    setrlimit(RLIMIT_AS, &limit);
    signal(SIGALRM, set_limits);
    struct itimerval often = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, NULL);
    static char *blocks[50];
    // On a slow machine fewer signals arrive.
    for (time_t end = time(NULL) + 5; handled < 3000 && time(NULL) < end;)
        CHECK(replace_random(blocks, COUNT(blocks), 600 * KB, 4 * MB) != NULL, "malloc: %s", strerror(errno));
}

TEST("a signal handler may set limits while malloc runs in a process with a limit") {
    IN_CHILD allocate();
}
