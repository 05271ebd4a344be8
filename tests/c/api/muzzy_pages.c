// muzzy pages of jemalloc, which the kernel has not taken yet, count as free bytes in mallinfo2
#include "check.h"

typedef int (*mallctl_function)(const char *, void *, size_t *, void *, size_t);

int main(void) {
    mallctl_function mallctl;
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    if (mallctl == NULL)
        return !mode_is("glibc");
    char *blocks[100];
    ssize_t at_once = 0, never = -1;
    unsigned arena;
    size_t length = sizeof arena;
    char name[64];
    CHECK(mallctl("thread.arena", &arena, &length, NULL, 0) == 0);
    snprintf(name, sizeof name, "arena.%u.muzzy_decay_ms", arena);
    CHECK(mallctl(name, NULL, NULL, &never, sizeof never) == 0);
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = malloc_touched(512 * KB, 1);
    size_t free_before = mallinfo2().fordblks;
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
    snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", arena);
    CHECK(mallctl(name, NULL, NULL, &at_once, sizeof at_once) == 0);
    size_t more = mallinfo2().fordblks - free_before;
    CHECK(more > 45 * MB && more < 60 * MB, "%zu bytes more are free of 50 MB", more);
}
