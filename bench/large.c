/* Large blocks: allocate 5-25 MiB, write each page, keep twenty, replace at random.
 *
 *   large --live N --min BYTES --max BYTES --seconds S --warmup S --idle S
 *
 * The pattern of the `malloc-large` test of public allocator suites, in one thread. One operation is a replacement. */
#include "workers.h"

static size_t smallest, largest;
static unsigned live;

static void *replace(void *argument) {
    struct worker *self = argument;
    char **blocks = calloc(live, sizeof *blocks);
    if (!blocks) die("calloc");
    while (is_running()) {
        unsigned slot = (unsigned)(next_random(&self->random) >> 33) % live;
        size_t size = smallest + (size_t)(random_unit(&self->random) * (double)(largest - smallest));
        free(blocks[slot]);
        blocks[slot] = malloc(size);
        if (!blocks[slot]) die("malloc");
        touch(blocks[slot], size);
        worker_count(self, 1);
    }
    for (unsigned i = 0; i < live; i++) free(blocks[i]);
    free(blocks);
    return NULL;
}

int main(int argc, char **argv) {
    smallest = (size_t)argument(argc, argv, "min", 5 << 20);
    largest = (size_t)argument(argc, argv, "max", 25 << 20);
    live = (unsigned)argument(argc, argv, "live", 20);
    struct rate rate =
        workers_rate(replace, 1, argument(argc, argv, "warmup", 0.5), argument(argc, argv, "seconds", 2));
    idle_and_report(argument(argc, argv, "idle", 0), rate);
    return 0;
}
