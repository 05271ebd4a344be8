/* Cost of malloc and free, in nanoseconds per pair.
 *
 *   malloc_free --size BYTES --depth N --threads N --batches N --pairs N
 *
 * Each thread allocates `depth` blocks and frees them until `pairs` pairs are done: one batch, shorter than a time
 * slice. The fastest batch counts, because other processes slow down the others. One thread is timed by its CPU clock,
 * several by the wall clock, which includes their waiting. --size 0 mixes sizes of 16 to 1024 bytes. */
#include <pthread.h>

#include "bench.h"

static size_t size;
static unsigned depth, batches, pairs;
static pthread_barrier_t start_line;
static clockid_t clock_of_batch = CLOCK_THREAD_CPUTIME_ID;

static void one_batch(void **blocks, const size_t *sizes) {
    for (unsigned done = 0; done < pairs; done += depth) {
        for (unsigned i = 0; i < depth; i++) {
            blocks[i] = malloc(sizes[i]);
            keep(blocks[i]);
        }
        for (unsigned i = 0; i < depth; i++) free(blocks[i]);
    }
}

static void *loop(void *best_ns) {
    void **blocks = calloc(depth, sizeof *blocks);
    size_t *sizes = calloc(depth, sizeof *sizes);
    uint64_t random = seed_for(0);
    if (!blocks || !sizes) die("calloc");
    for (unsigned i = 0; i < depth; i++) sizes[i] = size ? size : 16 + next_random(&random) % 1009;
    double best = 1e30;
    for (unsigned batch = 0; batch <= batches; batch++) {
        pthread_barrier_wait(&start_line); /* all threads run at once, so that contention is measured */
        double start = clock_s(clock_of_batch);
        one_batch(blocks, sizes);
        double ns = (clock_s(clock_of_batch) - start) * 1e9 / pairs;
        if (batch > 0 && ns < best) best = ns; /* the first batch warms up */
    }
    free(sizes);
    free(blocks);
    *(double *)best_ns = best;
    return NULL;
}

int main(int argc, char **argv) {
    unsigned threads = (unsigned)argument(argc, argv, "threads", 1);
    size = (size_t)argument(argc, argv, "size", 64);
    depth = (unsigned)argument(argc, argv, "depth", 1);
    batches = (unsigned)argument(argc, argv, "batches", 200);
    pairs = (unsigned)argument(argc, argv, "pairs", 100000);
    if (threads > 1) clock_of_batch = CLOCK_MONOTONIC;
    pthread_t *ids = calloc(threads, sizeof *ids);
    double *best = calloc(threads, sizeof *best), sum = 0;
    if (!ids || !best) die("calloc");
    pthread_barrier_init(&start_line, NULL, threads);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, loop, &best[i]) != 0) die("pthread_create");
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum += best[i];
    }
    printf("{\"pair_ns\": %.3f}\n", sum / threads);
    free(ids);
    free(best);
    return 0;
}
