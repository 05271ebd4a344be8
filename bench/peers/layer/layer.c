/* The least that a layer can do which serves large blocks by other means: malloc compares the size, free looks at the
 * address, and both go on to jemalloc. What flarena costs beside it is its own; what both cost no layer can save. */
#include <stdint.h>
#include <stdlib.h>

#define JEMALLOC(function) extern __typeof__(function) _rjem_##function __attribute__((visibility("hidden")))
JEMALLOC(malloc);
JEMALLOC(free);
JEMALLOC(calloc);
JEMALLOC(realloc);

/* Apart, or the compiler would see that both ways lead to the same place. */
static __attribute__((noinline, cold)) void *malloc_large(size_t size) {
    __asm__ volatile("");
    return _rjem_malloc(size);
}

static __attribute__((noinline, cold)) void free_aligned(void *block) {
    __asm__ volatile("");
    _rjem_free(block);
}

void *malloc(size_t size) {
    return size > UINT16_MAX ? malloc_large(size) : _rjem_malloc(size);
}

void free(void *block) {
    if (((uintptr_t)block & UINT16_MAX) == 0) {
        free_aligned(block);
        return;
    }
    _rjem_free(block);
}

void *calloc(size_t count, size_t size) {
    return _rjem_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    return _rjem_realloc(block, size);
}
