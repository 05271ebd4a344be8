// random calls of the malloc family from many threads, with forks, signals, markers and trims, lose no byte
//
//   stress [--seed=N] [--threads=N] [--operations=N] [--live=MB] [--seconds=N] [--failures] [--mappings=N] [--without=CLASS,...]
//
// With one thread the same seed repeats the same operations. With more threads each repeats its choices, except for blocks
// that another thread has locked.
#include "stress.h"

enum { BLOCKS_OF_EACH = 200, STALL_SECONDS = 120, CHURN_OPERATIONS = 20000 };
struct block *blocks;
size_t block_count;
_Thread_local struct worker *self;
_Thread_local volatile bool in_malloc;
// A handler may fork while this thread holds no lock of libc. In a process with one thread it may always fork.
static _Thread_local volatile sig_atomic_t may_fork;
static bool may_fork_anywhere;

static atomic_long started, finished, forks_in_handlers;
static atomic_bool stop;

uint64_t next(struct worker *worker) {
    uint64_t x = worker->random += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

size_t below(struct worker *worker, size_t bound) {
    return (size_t)(next(worker) % bound);
}

bool one_in(struct worker *worker, unsigned n) {
    return next(worker) % n == 0;
}

void step(struct worker *worker) {
    struct block *block = lock_block(worker);
    if (block == NULL)
        return;
    size_t kind = below(worker, 1000);
    if (block->start == NULL) {
        if (touched_bytes() < live_bytes)
            obtain(worker, block);
    } else if (kind < 350)
        resize(worker, block);
    else if (kind < 360 || (kind < 500 && block->size >= 1 * MB))
        change_attributes(worker, block);
    else
        release(worker, block);
    unlock_block(block);
    worker->done++;
}

// Operations that stop other threads or take a millisecond: once in a thousand steps.
static void rare_step(struct worker *worker) {
    switch (below(worker, 4)) {
    case 0:
        if (enabled[FORK])
            fork_and_check(worker);
        break;
    case 1:
        if (enabled[SPAWN])
            start_another(worker);
        break;
    default:
        read_statistics(worker);
    }
    worker->done++;
}

static struct worker make_worker(unsigned id, uint64_t generation) {
    size_t part = id % (unsigned)thread_count;
    return (struct worker){.random = first_seed + id * 0x100000001B3u + (generation << 40),
                           .first = part * BLOCKS_OF_EACH,
                           .count = BLOCKS_OF_EACH,
                           .id = id};
}

static void work(struct worker *worker, long most) {
    self = worker;
    while (worker->done < most && !atomic_load(&stop) && atomic_fetch_add(&started, 1) < operations) {
        if (one_in(worker, 1000)) {
            rare_step(worker);
        } else {
            may_fork = true;
            step(worker);
            may_fork = false;
        }
        atomic_fetch_add(&finished, 1);
    }
}

static bool is_over(void) {
    return atomic_load(&stop) || atomic_load(&started) >= operations;
}

static void *run_worker(void *worker) {
    mask_signal(SIG_UNBLOCK, SIGUSR1);
    work(worker, enabled[CHURN] ? CHURN_OPERATIONS : operations);
    return NULL;
}

// Runs one worker thread after the other.
static void *run_workers(void *number) {
    // Static, not on this thread's stack: a forked child lacks this thread and reuses its stack for a new one.
    static struct worker workers[MOST_THREADS];
    struct worker *worker = &workers[(uintptr_t)number];
    for (uint64_t generation = 0; !is_over(); generation++) {
        pthread_t thread;
        *worker = make_worker((unsigned)(uintptr_t)number, generation);
        int error = pthread_create(&thread, NULL, run_worker, worker);
        CHECK(error == 0 || failures_expected, "pthread_create: %s", strerror(error));
        if (error == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

static void check_not_in_malloc(void *unused) {
    CHECK(!in_malloc, "seed %llu: a thread was cancelled inside a call of the family", (unsigned long long)first_seed);
}

static void *run_until_cancelled(void *worker) {
    self = worker;
    pthread_cleanup_push(check_not_in_malloc, NULL);
    for (;;) {
        pthread_testcancel();
        for (int i = 0; i < 5; i++)
            step(self);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void *cancel_threads(void *unused) {
    for (uint64_t generation = 0; !is_over(); generation++) {
        pthread_t thread;
        struct worker worker = make_worker(MOST_THREADS, generation);
        if (pthread_create(&thread, NULL, run_until_cancelled, &worker) == 0) {
            usleep((useconds_t)(next(&(struct worker){.random = generation}) % 20000));
            pthread_cancel(thread);
            pthread_join(thread, NULL);
        }
        usleep(50000);
    }
    return NULL;
}

static void ignore_signal(int signal) {
}

static void on_signal(int signal) {
    if (may_fork_anywhere || (may_fork && !in_malloc)) {
        fork_in_handler(signal);
        atomic_fetch_add(&forks_in_handlers, 1);
    }
}

// In a process with one thread libc takes no locks at a fork. In glibc mode the governor counts as a second thread.
static void handle_signals(void) {
    const char *governor = getenv("FLARENA_GOVERNOR");
    may_fork_anywhere = thread_count == 1 && (!mode_is("glibc") || (governor != NULL && strcmp(governor, "off") == 0));
    struct sigaction action = {.sa_handler = enabled[SIGNAL_FORKS] ? on_signal : ignore_signal};
    sigaction(SIGUSR1, &action, NULL);
}

// Sends fifty signals a second. Fails if no operation finishes for STALL_SECONDS.
static void watch(void) {
    long last = -1, stalled = 0;
    time_t end = time(NULL) + seconds;
    while (!is_over()) {
        usleep(20000);
        if (enabled[SIGNALS] || enabled[SIGNAL_FORKS])
            kill(getpid(), SIGUSR1);
        if (seconds > 0 && time(NULL) >= end)
            atomic_store(&stop, true);
        stalled = atomic_load(&finished) == last ? stalled + 1 : 0;
        last = atomic_load(&finished);
        CHECK(stalled < STALL_SECONDS * 50, "seed %llu: no operation finished for %d s; repeat: %s", (unsigned long long)first_seed,
              STALL_SECONDS, replay);
    }
}

static void release_all(void) {
    struct worker worker = make_worker(MOST_THREADS + 1, 0);
    self = &worker;
    for (size_t i = 0; i < block_count; i++) {
        CHECK(atomic_load(&blocks[i].locked) == 0, "block %zu is still locked", i);
        if (blocks[i].start != NULL)
            release(&worker, &blocks[i]);
    }
    self = NULL;
}

// At the end no memory, locked pages, threads or descriptors are left over.
static void check_end(size_t files_before) {
    if (failures_expected)
        return;
    malloc_trim(0);
    if (!mode_is("bare")) {
        CHECK(statistic("recycler", "live_bytes") == 0, "%lld bytes live", statistic("recycler", "live_bytes"));
        await_rss_below(96 * MB, 20); // the governor may still be purging
    }
    CHECK(proc_number("status", "VmLck") <= 0, "seed %llu: %ld bytes locked", (unsigned long long)first_seed, proc_number("status", "VmLck"));
    CHECK(count_threads(NULL) <= 2, "%d threads", count_threads(NULL));
    CHECK(count_descriptors() <= files_before + 5, "%zu descriptors, %zu at the start", count_descriptors(), files_before);
}

// One thread only, so that libc takes no locks at a fork. Another process sends the signals.
static void run_alone(void) {
    struct worker worker = make_worker(0, 0);
    time_t end = time(NULL) + seconds;
    pid_t interrupter = start_interrupter();
    while (!is_over() && (seconds == 0 || time(NULL) < end)) {
        alarm(STALL_SECONDS);
        work(&worker, worker.done + 50);
    }
    alarm(0);
    end_helper(interrupter);
}

static void run_threads(void) {
    pthread_t runners[MOST_THREADS], canceller;
    mask_signal(SIG_BLOCK, SIGUSR1); // only workers handle it, so that a handler interrupts a worker's call
    bool has_canceller = enabled[CANCEL] && pthread_create(&canceller, NULL, cancel_threads, NULL) == 0;
    size_t running = 0;
    for (uintptr_t i = 0; i < thread_count; i++)
        if (pthread_create(&runners[running], NULL, run_workers, (void *)i) == 0)
            running++;
        else
            CHECK(failures_expected, "pthread_create: %s", strerror(errno));
    if (running == 0) {
        struct worker worker = make_worker(0, 0);
        work(&worker, operations);
    }
    watch();
    for (size_t i = 0; i < running; i++)
        pthread_join(runners[i], NULL);
    if (has_canceller)
        pthread_join(canceller, NULL);
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    printf("%s\n", replay);
    fflush(stdout);
    size_t files = count_descriptors();
    block_count = thread_count * BLOCKS_OF_EACH;
    // Not allocated from the heap under test.
    blocks = mmap(NULL, block_count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(blocks != MAP_FAILED, "cannot map the table of blocks");
    if (failures_expected)
        prepare_for_failures();
    pid_t requester = start_requester();
    handle_signals();
    if (thread_count == 1)
        run_alone();
    else
        run_threads();
    end_helper(requester);
    release_all();
    check_end(files);
    printf("%ld operations, %ld forks in signal handlers\n", atomic_load(&finished), atomic_load(&forks_in_handlers));
}
