// One call under a limit on memory, after half of the limit was freed. The exit status is 3 if the call is refused.
// faults.sh compares it with a run without the library.
#include "check.h"

#define LIMIT (384 * MB)
#define HALF (LIMIT / 2)
#define REFUSED 3

static void set_limit(int resource) {
    struct rlimit value = {LIMIT, LIMIT};
    CHECK(setrlimit((__rlimit_resource_t)resource, &value) == 0, "setrlimit: %s", strerror(errno));
}

// Half of the limit in blocks of this size. 0 if one is refused.
static int blocks_of(size_t size, void *(*allocate)(size_t)) {
    size_t wanted = HALF / size, count = 0;
    void ***list = NULL;
    while (count < wanted) {
        void ***block = (void ***)allocate(size);
        if (block == NULL)
            break;
        touch(block, size, 0);
        *block = (void **)list;
        list = block;
        count++;
    }
    while (list != NULL) {
        void ***next = (void ***)*list;
        free(list);
        list = next;
    }
    return count == wanted;
}

static void *zeroed(size_t size) {
    return calloc(1, size);
}

static void *aligned(size_t size) {
    return aligned_alloc(4 * MB, size);
}

static void *grown(size_t size) {
    void *block = malloc(size / 100);
    void *longer = realloc(block, size);
    if (longer == NULL)
        free(block);
    return longer;
}

static int small(void) { return blocks_of(60000, malloc); }
static int mid(void) { return blocks_of(500000, malloc); }
static int large(void) { return blocks_of(8 * MB, malloc); }
static int small_calloc(void) { return blocks_of(60000, zeroed); }
static int large_calloc(void) { return blocks_of(100 * MB, zeroed); }
static int small_realloc(void) { return blocks_of(50000, grown); }
static int large_realloc(void) { return blocks_of(HALF, grown); }
static int memalign_large(void) { return blocks_of(HALF, aligned); }

static int map(void) {
    char *block = (char *)mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return 0;
    touch(block, HALF, 1);
    return munmap(block, HALF) == 0;
}

static int lock(void) {
    void *block = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int locked = block != MAP_FAILED && mlock(block, HALF) == 0;
    if (block != MAP_FAILED)
        munmap(block, HALF);
    return locked;
}

static pthread_mutex_t all_started = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_others(void *unused) {
    pthread_mutex_lock(&all_started);
    pthread_mutex_unlock(&all_started);
    return unused;
}

static int threads(void) {
    enum { WANTED = 16 };
    static pthread_t thread[WANTED];
    pthread_attr_t attributes;
    int count = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, HALF / WANTED);
    pthread_mutex_lock(&all_started);
    while (count < WANTED && pthread_create(thread + count, &attributes, wait_for_others, NULL) == 0)
        count++;
    pthread_mutex_unlock(&all_started);
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    return count == WANTED;
}

static int child_succeeds(int (*act)(void)) {
    pid_t child = fork();
    if (child == 0)
        _exit(act() ? 0 : 1);
    return child > 0 && await_child(child) == 0;
}

static int forked(void) { return child_succeeds(map) && child_succeeds(small); }

static int execute(void) {
    execl("/bin/true", "true", NULL);
    return 0;
}

static int executed(void) { return child_succeeds(execute); }

static const struct {
    const char *name;
    int (*act)(void);
} CALLS[] = {
    {"small", small}, {"mid", mid}, {"large", large}, {"small_calloc", small_calloc}, {"large_calloc", large_calloc},
    {"small_realloc", small_realloc}, {"large_realloc", large_realloc}, {"memalign", memalign_large}, {"mmap", map},
    {"mlock", lock}, {"fork", forked}, {"exec", executed}, {"threads", threads},
};

// Leaves this many of the mappings that the system permits.
static void use_mappings(int left) {
    size_t page = PAGE, most = max_mappings();
    char *area = (char *)mmap(NULL, 2 * most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(area != MAP_FAILED, "mmap: %s", strerror(errno));
    size_t used = 1;
    while (used < 2 * most && mprotect(area + used * page, page, PROT_READ) == 0)
        used += 2;
    CHECK(used < 2 * most, "the number of mappings is not limited");
    for (int undone = 0; undone < left; undone += 2)
        mprotect(area + (used -= 2) * page, page, PROT_NONE);
}

int main(int argc, char **argv) {
    CHECK(argc == 3, "usage: limits LIMIT CALL");
    const char *limit = argv[1];
    size_t call = 0;
    while (call < COUNT(CALLS) && strcmp(CALLS[call].name, argv[2]) != 0)
        call++;
    CHECK(call < COUNT(CALLS), "no call %s", argv[2]);
    if (strcmp(limit, "as") == 0) {
        // As a shell sets it, before the start.
        set_limit(RLIMIT_AS);
        execl("/proc/self/exe", argv[0], "inherited", argv[2], NULL);
        CHECK(0, "execl: %s", strerror(errno));
    }
    small_heap(20 * MB);
    if (strcmp(limit, "data") == 0)
        set_limit(RLIMIT_DATA);
    if (strcmp(limit, "mappings") == 0)
        use_mappings(60);
    if (strcmp(limit, "locked") == 0) {
        set_limit(RLIMIT_MEMLOCK);
        CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall: %s", strerror(errno));
    }
    free(malloc_touched(HALF, 1));
    return CALLS[call].act() ? 0 : REFUSED;
}
