/* Cost of a call in a process with many live large blocks that were never written.
 *
 *   scale --blocks N --bytes B --threads T --probes P
 *
 * T threads allocate N blocks together. Then P random blocks are freed and allocated again, and each call is timed. A
 * trim, a fork and, under flarena, a marker follow. Prints medians. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static char **blocks;
static size_t count, bytes;
static unsigned thread_count;
static pthread_barrier_t all_hold, all_probed;

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_value);
    return n ? values[n / 2] : 0;
}

static void *hold(void *number) {
    size_t first = (size_t)number;
    for (size_t i = first; i < count; i += thread_count)
        if (!(blocks[i] = malloc(bytes))) die("malloc");
    pthread_barrier_wait(&all_hold);
    pthread_barrier_wait(&all_probed);
    for (size_t i = first; i < count; i += thread_count) free(blocks[i]);
    return NULL;
}

struct probe {
    double malloc_us, free_us;
};

static struct probe probe_pairs(size_t probes) {
    double *mallocs = calloc(probes, sizeof *mallocs), *frees = calloc(probes, sizeof *frees);
    uint64_t random = seed_for(0);
    if (!mallocs || !frees) die("calloc");
    for (size_t i = 0; i < probes; i++) {
        char **slot = &blocks[next_random(&random) % count];
        double before = now_s();
        free(*slot);
        double between = now_s();
        *slot = malloc(bytes);
        mallocs[i] = now_s() - between, frees[i] = between - before;
        if (!*slot) die("malloc");
    }
    struct probe found = {median(mallocs, probes) * 1e6, median(frees, probes) * 1e6};
    free(mallocs), free(frees);
    return found;
}

static double once_fork(void) {
    double start = now_s();
    pid_t child = fork();
    if (child == 0) _exit(0);
    double end = now_s();
    if (child < 0) return -1; /* the system refuses to commit so much */
    waitpid(child, NULL, 0);
    return end - start;
}

static double once_trim(void) {
    double start = now_s();
    malloc_trim(0);
    return now_s() - start;
}

static int (*mark)(const char *, const char *, long);

static double once_mark(void) {
    double start = now_s();
    mark("receive", "site-1", 0);
    return now_s() - start;
}

static double median_us(double (*once)(void)) {
    double values[9];
    for (size_t i = 0; i < 9; i++)
        if ((values[i] = once()) < 0) return -1;
    return median(values, 9) * 1e6;
}

static void report(double hold_s, double free_s, struct probe pair) {
    printf("{\"hold_us\": %.3f, \"release_us\": %.3f, ", hold_s / (double)count * 1e6, free_s / (double)count * 1e6);
    printf("\"malloc_us\": %.3f, \"free_us\": %.3f, ", pair.malloc_us, pair.free_us);
    printf("\"hwm_bytes\": %zu", status_bytes("VmHWM:"));
}

int main(int argc, char **argv) {
    count = (size_t)argument(argc, argv, "blocks", 1000);
    bytes = (size_t)argument(argc, argv, "bytes", 80 << 20);
    thread_count = (unsigned)argument(argc, argv, "threads", 1);
    size_t probes = (size_t)argument(argc, argv, "probes", 2000);
    mark = (int (*)(const char *, const char *, long))dlsym(RTLD_DEFAULT, "flarena_mark");
    pthread_t *threads = calloc(thread_count, sizeof *threads);
    if (!threads || !(blocks = calloc(count, sizeof *blocks))) die("calloc");
    pthread_barrier_init(&all_hold, NULL, thread_count + 1);
    pthread_barrier_init(&all_probed, NULL, thread_count + 1);
    double start = now_s();
    for (size_t i = 0; i < thread_count; i++)
        if (pthread_create(&threads[i], NULL, hold, (void *)i) != 0) die("pthread_create");
    pthread_barrier_wait(&all_hold);
    double held = now_s() - start;
    struct probe pair = probe_pairs(probes);
    double trim = median_us(once_trim), forked = median_us(once_fork), marked = mark ? median_us(once_mark) : -1;
    start = now_s();
    pthread_barrier_wait(&all_probed);
    for (size_t i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    report(held, now_s() - start, pair);
    printf(", \"trim_us\": %.1f", trim);
    if (forked >= 0) printf(", \"fork_us\": %.1f", forked);
    if (marked >= 0) printf(", \"mark_us\": %.1f", marked);
    printf("}\n");
    return 0;
}
