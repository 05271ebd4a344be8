/* A server whose blocks outlive the thread that allocated them (the larson pattern).
 *
 *   server --threads N --live N --min BYTES --max BYTES --turns N --seconds S --warmup S --idle S
 *
 * Each worker replaces random small blocks of its set. After `turns` replacements it passes the set to a new thread and
 * ends, so that blocks are freed after the end of the thread that allocated them. One operation is one replacement. */
#include "workers.h"

static size_t smallest, largest;
static unsigned live, turns;

struct generation {
    struct worker *worker;
    void **blocks;
};

static size_t random_size(uint64_t *random) { return smallest + next_random(random) % (largest - smallest + 1); }

static void *serve(void *argument) {
    struct generation *generation = argument;
    uint64_t random = generation->worker->random;
    for (unsigned turn = 0; turn < turns; turn++) {
        unsigned slot = (unsigned)(next_random(&random) >> 33) % live;
        size_t size = random_size(&random);
        free(generation->blocks[slot]);
        char *block = malloc(size);
        if (!block) die("malloc");
        block[0] = block[size - 1] = 1;
        generation->blocks[slot] = block;
    }
    generation->worker->random = random;
    worker_count(generation->worker, turns);
    return NULL;
}

static void *generations(void *argument) {
    struct generation generation = {argument, calloc(live, sizeof(void *))};
    if (!generation.blocks) die("calloc");
    while (is_running()) {
        pthread_t next;
        if (pthread_create(&next, NULL, serve, &generation) != 0) die("pthread_create");
        pthread_join(next, NULL);
    }
    for (unsigned i = 0; i < live; i++) free(generation.blocks[i]);
    free(generation.blocks);
    return NULL;
}

int main(int argc, char **argv) {
    smallest = (size_t)argument(argc, argv, "min", 8);
    largest = (size_t)argument(argc, argv, "max", 1000);
    live = (unsigned)argument(argc, argv, "live", 5000);
    turns = (unsigned)argument(argc, argv, "turns", 10000);
    struct rate rate = workers_rate(generations, (unsigned)argument(argc, argv, "threads", 2),
                                    argument(argc, argv, "warmup", 0.5), argument(argc, argv, "seconds", 2));
    idle_and_report(argument(argc, argv, "idle", 0), rate);
    return 0;
}
