/* Producers and consumers: each block is freed by another thread than the one that allocated it.
 *
 *   handoff --pairs N --min BYTES --max BYTES --touch 0|1 --batch N --seconds S --warmup S --idle S
 *
 * Worker 2k allocates and passes batches of blocks through a bounded ring to worker 2k+1, which frees them. A worker
 * sleeps while its ring is full or empty, so that waiting costs no CPU time. One operation is one free. */
#include <semaphore.h>

#include "workers.h"

enum { RING = 256, LARGEST_BATCH = 64 };

struct ring {
    _Alignas(128) sem_t room;
    _Alignas(128) sem_t filled;
    void *blocks[RING][LARGEST_BATCH];
};

static size_t smallest, largest;
static unsigned batch;
static int touched;
static struct ring *rings;

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) {
    }
}

static void *new_block(uint64_t *random) {
    size_t size = smallest + (size_t)(random_unit(random) * (double)(largest - smallest));
    void *block = malloc(size);
    if (!block) die("malloc");
    touch(block, touched ? size : 1);
    return block;
}

/* A null pointer marks the end, so that the consumer frees all blocks first. */
static void produce(struct worker *self, struct ring *ring) {
    int running = 1;
    for (unsigned put = 0; running; put++) {
        wait_for(&ring->room);
        running = is_running();
        for (unsigned i = 0; i < batch; i++) ring->blocks[put % RING][i] = running ? new_block(&self->random) : NULL;
        sem_post(&ring->filled);
    }
}

static void consume(struct worker *self, struct ring *ring) {
    for (unsigned taken = 0;; taken++) {
        void **blocks = ring->blocks[taken % RING];
        wait_for(&ring->filled);
        if (!blocks[0]) return;
        for (unsigned i = 0; i < batch; i++) free(blocks[i]);
        sem_post(&ring->room);
        worker_count(self, batch);
    }
}

static void *run(void *argument) {
    struct worker *self = argument;
    struct ring *ring = &rings[self->index / 2];
    if (self->index % 2 == 0)
        produce(self, ring);
    else
        consume(self, ring);
    return NULL;
}

int main(int argc, char **argv) {
    unsigned pairs = (unsigned)argument(argc, argv, "pairs", 1);
    smallest = (size_t)argument(argc, argv, "min", 16);
    largest = (size_t)argument(argc, argv, "max", 1024);
    touched = (int)argument(argc, argv, "touch", 1);
    batch = (unsigned)argument(argc, argv, "batch", 1);
    if (batch < 1 || batch > LARGEST_BATCH) die("--batch must be 1 to 64");
    rings = aligned_alloc(128, pairs * sizeof *rings);
    if (!rings) die("aligned_alloc");
    for (unsigned i = 0; i < pairs; i++)
        if (sem_init(&rings[i].room, 0, RING) != 0 || sem_init(&rings[i].filled, 0, 0) != 0) die("sem_init");
    struct rate rate =
        workers_rate(run, 2 * pairs, argument(argc, argv, "warmup", 0.5), argument(argc, argv, "seconds", 2));
    free(rings);
    idle_and_report(argument(argc, argv, "idle", 0), rate);
    return 0;
}
