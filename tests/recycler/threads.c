// blocks that threads hand over, resize and free for each other keep their contents
#include "check.h"

enum { THREADS = 8, SLOTS = 32, STEPS = 1500 };

struct slot {
    pthread_mutex_t lock;
    char *block;
    size_t size;
    char value;
};
static struct slot slots[SLOTS];

static void verify(struct slot *slot) {
    for (size_t at = 0; at < slot->size; at += 4096)
        CHECK(slot->block[at] == slot->value);
}

static void *work(void *argument) {
    unsigned seed = (unsigned)(size_t)argument + 1;
    for (int step = 0; step < STEPS; step++) {
        struct slot *slot = &slots[rand_r(&seed) % SLOTS];
        size_t size = MB / 2 + (size_t)(rand_r(&seed) % 600) * 10000;
        pthread_mutex_lock(&slot->lock);
        if (slot->block)
            verify(slot);
        if (slot->block && rand_r(&seed) % 3 == 0) {
            slot->block = realloc(slot->block, size);
        } else {
            free(slot->block);
            slot->block = rand_r(&seed) % 4 ? malloc(size) : calloc(1, size);
        }
        CHECK(slot->block != NULL);
        slot->size = size;
        slot->value = (char)rand_r(&seed);
        touch(slot->block, size, slot->value);
        pthread_mutex_unlock(&slot->lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < SLOTS; i++)
        pthread_mutex_init(&slots[i].lock, NULL);
    start_threads(threads, THREADS, work);
    join_threads(threads, THREADS);
    for (int i = 0; i < SLOTS; i++)
        free(slots[i].block);
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
    CHECK(statistic("recycler", "live_bytes") == 0);
    CHECK(statistic("recycler", "realloc_copied") == 0);
}
