// 64 threads allocate and free each other's blocks, and no byte is lost
#include "check.h"
#include <pthread.h>

#define SLOTS 256
struct slot {
    pthread_mutex_t lock;
    unsigned char *block;
    size_t size;
    unsigned seed;
};
static struct slot slots[SLOTS];

static void verify(const struct slot *slot) {
    size_t step = slot->size > 64 * KB ? 4093 : 1; // large blocks: one byte in each page is enough
    for (size_t at = 0; at < slot->size; at += step)
        CHECK(slot->block[at] == pattern(at, slot->seed), "byte %zu of %zu", at, slot->size);
}

static void stamp(struct slot *slot, size_t from) {
    size_t step = slot->size > 64 * KB ? 4093 : 1;
    for (size_t at = (from + step - 1) / step * step; at < slot->size; at += step)
        slot->block[at] = pattern(at, slot->seed);
}

static unsigned next(unsigned *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static size_t random_size(unsigned *state) {
    unsigned kind = next(state) % 100;
    return 1 + (kind < 70 ? next(state) % 500 : kind < 95 ? next(state) % (128 * KB) : next(state) % (4 * MB));
}

static void *work(void *seed_pointer) {
    unsigned state = (unsigned)(uintptr_t)seed_pointer * 7919;
    for (int i = 0; i < 3000; i++) {
        struct slot *slot = &slots[next(&state) % SLOTS];
        pthread_mutex_lock(&slot->lock);
        if (slot->block == NULL) {
            slot->size = random_size(&state);
            slot->seed = next(&state);
            slot->block = next(&state) % 3 == 0 ? aligned_alloc(64, slot->size) : malloc(slot->size);
            CHECK(slot->block != NULL, "malloc(%zu)", slot->size);
            stamp(slot, 0);
        } else {
            verify(slot);
            free(slot->block);
            slot->block = NULL;
        }
        pthread_mutex_unlock(&slot->lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[64];
    for (size_t i = 0; i < SLOTS; i++)
        pthread_mutex_init(&slots[i].lock, NULL);
    for (uintptr_t i = 0; i < COUNT(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0, "pthread_create");
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].block != NULL) {
            verify(&slots[i]);
            free(slots[i].block);
        }
}
