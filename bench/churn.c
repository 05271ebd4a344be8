/* Churn of large blocks: each thread keeps `live` blocks of random sizes and replaces one at a time.
 *
 *   churn --threads N --min BYTES --max BYTES --log 0|1 --live N --touch 0|1 --handoff 0|1
 *         --seconds S --warmup S --idle S
 *
 * One operation is a malloc, a write to each page (touch), and a free. Sizes are uniform between min and max,
 * or uniform in their logarithm (log). With handoff the threads share all slots, so most blocks
 * are freed by another thread than the one that allocated them. */
#include <malloc.h>
#include <math.h>
#include <pthread.h>

#include "bench.h"

struct worker {
    _Alignas(128) _Atomic uint64_t operations; /* in a cache line of its own, so that counting is not shared */
    uint64_t random;
    unsigned index;
    pthread_t thread;
};

static _Atomic int workers_stop;

static size_t smallest, largest;
static unsigned live, slots_total;
static int logarithmic, touched, handoff;
static _Atomic(void *) *slots;

static size_t random_size(uint64_t *random) {
    double at = random_unit(random);
    if (logarithmic) return (size_t)((double)smallest * pow((double)largest / (double)smallest, at));
    return smallest + (size_t)(at * (double)(largest - smallest));
}

static void *churn(void *argument) {
    struct worker *self = argument;
    while (!atomic_load_explicit(&workers_stop, memory_order_relaxed)) {
        unsigned pick = (unsigned)(next_random(&self->random) >> 33);
        unsigned slot = handoff ? pick % slots_total : self->index * live + pick % live;
        size_t size = random_size(&self->random);
        free(atomic_exchange(&slots[slot], NULL));
        char *block = malloc(size);
        if (!block) die("malloc");
        if (touched) touch(block, size);
        free(atomic_exchange(&slots[slot], block)); /* with handoff another thread may have filled the slot */
        uint64_t sum = atomic_load_explicit(&self->operations, memory_order_relaxed) + 1;
        atomic_store_explicit(&self->operations, sum, memory_order_relaxed);
    }
    return NULL;
}

static uint64_t workers_sum(struct worker *workers, unsigned count) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) sum += atomic_load_explicit(&workers[i].operations, memory_order_relaxed);
    return sum;
}

struct rate {
    double operations, seconds, cpu_s;
};

/* The clock reads enclose the counts: a preemption between them can only lower the rate. */
static struct rate measure_rate(struct worker *workers, unsigned count, double seconds) {
    double start_s = clock_s(CLOCK_MONOTONIC), start_cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    double operations = (double)workers_sum(workers, count);
    sleep_s(seconds);
    operations = (double)workers_sum(workers, count) - operations;
    return (struct rate){operations, clock_s(CLOCK_MONOTONIC) - start_s, clock_s(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_s};
}

/* Runs `churn` in `count` threads, measures for `seconds` after `warmup`, and joins the threads. */
static struct rate churn_rate(unsigned count, double warmup, double seconds) {
    struct worker *workers = aligned_alloc(128, count * sizeof *workers);
    if (!workers) die("aligned_alloc");
    memset(workers, 0, count * sizeof *workers);
    for (unsigned i = 0; i < count; i++) {
        workers[i].index = i;
        workers[i].random = seed_for(i);
        if (pthread_create(&workers[i].thread, NULL, churn, &workers[i]) != 0) die("pthread_create");
    }
    sleep_s(warmup);
    struct rate rate = measure_rate(workers, count, seconds);
    atomic_store(&workers_stop, 1);
    for (unsigned i = 0; i < count; i++) pthread_join(workers[i].thread, NULL);
    free(workers);
    return rate;
}

/* Idles and prints the result. BENCH_TRIM=1 marks the contender whose application calls malloc_trim. */
static void idle_and_report(double idle_s, struct rate rate) {
    const char *trims = getenv("BENCH_TRIM");
    if (trims && strcmp(trims, "1") == 0) malloc_trim(0);
    if (idle_s > 0) sleep_s(idle_s);
    printf("{\"operations\": %.0f, \"ops_per_s\": %.1f, \"cpu_s\": %.3f, \"idle_bytes\": %zu, \"hwm_bytes\": %zu}\n",
           rate.operations, rate.operations / rate.seconds, rate.cpu_s, status_bytes("VmRSS:"), status_bytes("VmHWM:"));
}

int main(int argc, char **argv) {
    unsigned threads = (unsigned)argument(argc, argv, "threads", 1);
    smallest = (size_t)argument(argc, argv, "min", 1 << 20);
    largest = (size_t)argument(argc, argv, "max", 8 << 20);
    live = (unsigned)argument(argc, argv, "live", 4);
    logarithmic = (int)argument(argc, argv, "log", 0);
    touched = (int)argument(argc, argv, "touch", 1);
    handoff = (int)argument(argc, argv, "handoff", 0);
    slots_total = threads * live;
    slots = calloc(slots_total, sizeof *slots);
    if (!slots) die("calloc");
    struct rate rate = churn_rate(threads, argument(argc, argv, "warmup", 0.5), argument(argc, argv, "seconds", 2));
    for (unsigned i = 0; i < slots_total; i++) free(slots[i]);
    idle_and_report(argument(argc, argv, "idle", 0), rate);
    return 0;
}
