/* Growth by realloc: buffers grow by a factor, as byte streams and vectors do.
 *
 *   growth --threads N --live N --max BYTES --factor F --seconds S --warmup S --idle S
 *
 * Each thread grows a random buffer by `factor` and writes the new part. Beyond a random limit up to `max` the buffer
 * restarts at 4 KiB. One operation is one realloc. A buffer has its index at both ends of the written part, so that a
 * realloc that loses data ends the program. */
#include "workers.h"

enum { START = 4096 };

static size_t largest;
static unsigned live;
static double factor;

struct buffer {
    char *data;
    size_t bytes, limit;
};

static void check(const struct buffer *buffer, char tag) {
    if (buffer->bytes && (buffer->data[0] != tag || buffer->data[buffer->bytes - 1] != tag)) die("realloc lost data");
}

static void grow(struct buffer *buffer, char tag, uint64_t *random) {
    check(buffer, tag);
    if (buffer->bytes >= buffer->limit) {
        free(buffer->data);
        *buffer = (struct buffer){NULL, 0, START + next_random(random) % largest};
    }
    size_t bytes = buffer->bytes ? (size_t)((double)buffer->bytes * factor) + 64 : START;
    char *data = realloc(buffer->data, bytes);
    if (!data) die("realloc");
    for (size_t at = buffer->bytes; at < bytes; at += 4096) data[at] = tag;
    data[0] = data[bytes - 1] = tag;
    buffer->data = data;
    buffer->bytes = bytes;
}

static void *run(void *argument) {
    struct worker *self = argument;
    struct buffer *buffers = calloc(live, sizeof *buffers);
    if (!buffers) die("calloc");
    while (is_running()) {
        unsigned pick = (unsigned)(next_random(&self->random) >> 33) % live;
        grow(&buffers[pick], (char)pick, &self->random);
        worker_count(self, 1);
    }
    for (unsigned i = 0; i < live; i++) free(buffers[i].data);
    free(buffers);
    return NULL;
}

int main(int argc, char **argv) {
    live = (unsigned)argument(argc, argv, "live", 8);
    largest = (size_t)argument(argc, argv, "max", 64 << 20);
    factor = argument(argc, argv, "factor", 1.125);
    struct rate rate = workers_rate(run, (unsigned)argument(argc, argv, "threads", 1),
                                    argument(argc, argv, "warmup", 0.5), argument(argc, argv, "seconds", 2));
    idle_and_report(argument(argc, argv, "idle", 0), rate);
    return 0;
}
