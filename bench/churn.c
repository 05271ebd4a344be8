/* Churn of large blocks: each thread keeps `live` blocks of random sizes and replaces one at a time.
 *
 *   churn --threads N --min BYTES --max BYTES --log 0|1 --live N --touch 0|1 --handoff 0|1
 *         --seconds S --warmup S --idle S
 *
 * One operation is a malloc, a write to each page (touch), and a free. Sizes are uniform between min and max,
 * or uniform in their logarithm (log). With handoff the threads share all slots, so most blocks
 * are freed by another thread than the one that allocated them. */
#include <math.h>

#include "workers.h"

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
    while (is_running()) {
        unsigned pick = (unsigned)(next_random(&self->random) >> 33);
        unsigned slot = handoff ? pick % slots_total : self->index * live + pick % live;
        size_t size = random_size(&self->random);
        free(atomic_exchange(&slots[slot], NULL));
        char *block = malloc(size);
        if (!block) die("malloc");
        if (touched) touch(block, size);
        free(atomic_exchange(&slots[slot], block)); /* with handoff another thread may have filled the slot */
        worker_count(self, 1);
    }
    return NULL;
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
    struct rate rate =
        workers_rate(churn, threads, argument(argc, argv, "warmup", 0.5), argument(argc, argv, "seconds", 2));
    for (unsigned i = 0; i < slots_total; i++) free(slots[i]);
    idle_and_report(argument(argc, argv, "idle", 0), rate);
    return 0;
}
