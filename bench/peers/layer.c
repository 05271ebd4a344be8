/* The smallest layer that could serve large blocks by itself: malloc compares the size, free tests the address, and
 * both call jemalloc. Its cost is the lower bound for flarena in jemalloc mode. */
#include <stdint.h>
#include <stdlib.h>

#define JEMALLOC(function) extern __typeof__(function) _rjem_##function __attribute__((visibility("hidden")))
JEMALLOC(malloc);
JEMALLOC(free);
JEMALLOC(calloc);
JEMALLOC(realloc);

/* Not inlined, or the compiler would merge the two branches. */
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
