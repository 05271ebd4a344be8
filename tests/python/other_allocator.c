/* Another allocator for LD_PRELOAD, which forwards to libc. */
#include <stddef.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

void *malloc(size_t size) { return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *pointer, size_t size) { return __libc_realloc(pointer, size); }
void free(void *pointer) { __libc_free(pointer); }
