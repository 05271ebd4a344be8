// a program's own allocator can register fork handlers under its lock: the library does not call it meanwhile
#define SKIP_OWNER_CHECK
#include "check.h"

static _Alignas(4096) char space[64 << 20];
static size_t used;
// Volatile, because the compiler assumes that pthread_atfork calls no function of this file.
static volatile int in_lock, is_set_up, handled;

static void handle(void) {
    handled++;
}

static void *allocate(size_t size, size_t alignment) {
    if (in_lock) {
        static const char text[] = "called while its lock is held\n";
        _exit(write(2, text, sizeof text - 1) < 0 ? 4 : 3);
    }
    if (!is_set_up) {
        is_set_up = in_lock = 1;
        pthread_atfork(handle, NULL, NULL);
        in_lock = 0;
    }
    size_t start = (used + 16 + alignment - 1) / alignment * alignment;
    if (size > sizeof space || start + size > sizeof space)
        return NULL;
    used = start + size;
    *(size_t *)(space + start - 16) = size;
    return space + start;
}

void *__libc_malloc(size_t size) {
    return allocate(size, 16);
}

void *__libc_calloc(size_t count, size_t size) {
    return allocate(count * size, 16);
}

void *__libc_memalign(size_t alignment, size_t size) {
    return allocate(size, alignment < 16 ? 16 : alignment);
}

void __libc_free(void *block) {
}

void *__libc_realloc(void *block, size_t size) {
    void *moved = allocate(size, 16);
    if (moved != NULL && block != NULL) {
        size_t old = *(size_t *)((char *)block - 16);
        memcpy(moved, block, old < size ? old : size);
    }
    return moved;
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    return (*block = __libc_memalign(alignment, size)) == NULL ? ENOMEM : 0;
}

void *malloc(size_t) __attribute__((alias("__libc_malloc")));
void *calloc(size_t, size_t) __attribute__((alias("__libc_calloc")));
void *realloc(void *, size_t) __attribute__((alias("__libc_realloc")));
void free(void *) __attribute__((alias("__libc_free")));
void *memalign(size_t, size_t) __attribute__((alias("__libc_memalign")));
void *aligned_alloc(size_t, size_t) __attribute__((alias("__libc_memalign")));

// Runs before the constructor of any library.
static void allocate_early(void) {
    free(malloc(1));
}
__attribute__((section(".preinit_array"), used)) static void (*const early_entry)(void) = allocate_early;

int main(void) {
    char *text = strdup("flarena");
    CHECK(strcmp(text, "flarena") == 0 && text > space && text < space + sizeof space, "%p", (void *)text);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK_CHILD(child);
    CHECK(handled == 1, "%d calls of the handler", handled);
}
