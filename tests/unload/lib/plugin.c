// A plugin with an allocator of its own: it exports mallctl. For a host that sets a flag, a purge takes 100 ms.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int calls;
// The host gets the address of these when it loads the plugin, and owns them.
static atomic_int *purging;
static void (*on_unload)(void);

int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len) {
    (void)old, (void)old_len, (void)new, (void)new_len;
    if (strncmp(name, "arena.", 6) == 0 && purging != NULL) {
        atomic_store(purging, 1);
        struct timespec start, now;
        clock_gettime(CLOCK_MONOTONIC, &start);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 100);
    }
    return 0;
}

int call(void) { return ++calls; }

void set_host(atomic_int *is_purging, void (*unload)(void)) {
    purging = is_purging;
    on_unload = unload;
}

__attribute__((destructor)) static void unload(void) {
    if (on_unload != NULL)
        on_unload();
}
