// Another allocator, as a program may link or preload one: a bump pointer that never frees. With INTERNAL_NAMES it
// defines glibc's internal names, too.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static _Alignas(4096) char space[512 << 20];
static atomic_size_t used;
atomic_size_t own_calls;
void before_allocation(void) __attribute__((weak)); // of the program

static void *take(size_t size, size_t alignment) {
    if (before_allocation != NULL)
        before_allocation();
    atomic_fetch_add(&own_calls, 1);
    if (size > sizeof space)
        return NULL;
    size_t at = atomic_fetch_add(&used, (size + alignment + 32) / 16 * 16);
    if (at + size + alignment + 32 > sizeof space)
        return NULL;
    uintptr_t start = ((uintptr_t)space + at + 16 + alignment - 1) / alignment * alignment;
    ((size_t *)start)[-1] = size;
    return (void *)start;
}

void *malloc(size_t size) {
    return take(size, 16);
}

void *calloc(size_t count, size_t size) {
    return take(count * size, 16);
}

void free(void *block) {
    (void)block;
}

void *realloc(void *block, size_t size) {
    void *moved = take(size, 16);
    if (moved != NULL && block != NULL) {
        size_t old = ((size_t *)block)[-1];
        memcpy(moved, block, old < size ? old : size);
    }
    return moved;
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = take(size, alignment);
    return *block == NULL ? ENOMEM : 0;
}

void *memalign(size_t alignment, size_t size) {
    return take(size, alignment);
}

void *aligned_alloc(size_t, size_t) __attribute__((alias("memalign")));

size_t malloc_usable_size(void *block) {
    return block == NULL ? 0 : ((size_t *)block)[-1];
}

#ifdef INTERNAL_NAMES
void *__libc_malloc(size_t) __attribute__((alias("malloc")));
void *__libc_calloc(size_t, size_t) __attribute__((alias("calloc")));
void *__libc_realloc(void *, size_t) __attribute__((alias("realloc")));
void __libc_free(void *) __attribute__((alias("free")));
void *__libc_memalign(size_t, size_t) __attribute__((alias("memalign")));
#endif
