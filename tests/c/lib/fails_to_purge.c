// A library that exports je_mallctl, as one that embeds jemalloc does. Its purge always fails.
#include <errno.h>
#include <stddef.h>

int purges;

int je_mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length) {
    (void)name, (void)old, (void)old_length, (void)new, (void)new_length;
    purges++;
    errno = EAGAIN;
    return EAGAIN;
}
