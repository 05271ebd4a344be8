/* Threads that repeat one operation until they are stopped. The rate is measured after a warm-up. */
#ifndef WORKERS_H
#define WORKERS_H

#include <malloc.h>
#include <pthread.h>

#include "bench.h"

struct worker {
    _Alignas(128) _Atomic uint64_t operations; /* in a cache line of its own, so that counting is not shared */
    uint64_t random;
    unsigned index;
    pthread_t thread;
};

static _Atomic int workers_stop;

static inline int is_running(void) { return !atomic_load_explicit(&workers_stop, memory_order_relaxed); }

static inline void worker_count(struct worker *self, uint64_t operations) {
    uint64_t sum = atomic_load_explicit(&self->operations, memory_order_relaxed) + operations;
    atomic_store_explicit(&self->operations, sum, memory_order_relaxed);
}

static uint64_t workers_sum(struct worker *workers, unsigned count) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) sum += atomic_load_explicit(&workers[i].operations, memory_order_relaxed);
    return sum;
}

struct rate {
    double operations, seconds, cpu_s;
};

static double process_cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The clock reads enclose the counts: a preemption between them can only lower the rate. */
static struct rate measure_rate(struct worker *workers, unsigned count, double seconds) {
    double start_s = now_s(), start_cpu_s = process_cpu_s();
    double operations = (double)workers_sum(workers, count);
    sleep_s(seconds);
    operations = (double)workers_sum(workers, count) - operations;
    return (struct rate){operations, now_s() - start_s, process_cpu_s() - start_cpu_s};
}

/* Runs `body` in `count` threads, measures for `seconds` after `warmup`, and joins the threads. */
static struct rate workers_rate(void *(*body)(void *), unsigned count, double warmup, double seconds) {
    struct worker *workers = aligned_alloc(128, count * sizeof *workers);
    if (!workers) die("aligned_alloc");
    memset(workers, 0, count * sizeof *workers);
    for (unsigned i = 0; i < count; i++) {
        workers[i].index = i;
        workers[i].random = seed_for(i);
        if (pthread_create(&workers[i].thread, NULL, body, &workers[i]) != 0) die("pthread_create");
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

#endif
