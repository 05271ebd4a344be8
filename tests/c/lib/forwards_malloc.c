// A profiler's malloc, as Scalene's: each function passes on to the next library, and glibc's internal names are defined,
// too.
#include <dlfcn.h>
#include <stddef.h>

size_t own_calls;

// All functions are looked up before the first one is used: dlsym may call free.
static void find(void);

#define FORWARD(RESULT, NAME, PARAMETERS, ...)   \
    static RESULT(*next_##NAME) PARAMETERS;      \
    RESULT NAME PARAMETERS {                     \
        if (next_##NAME == NULL) find();         \
        own_calls++;                             \
        return next_##NAME(__VA_ARGS__);         \
    }                                            \
    RESULT __libc_##NAME PARAMETERS {            \
        return NAME(__VA_ARGS__);                \
    }

FORWARD(void *, malloc, (size_t size), size)
FORWARD(void *, calloc, (size_t count, size_t size), count, size)
FORWARD(void *, realloc, (void *block, size_t size), block, size)
FORWARD(void *, memalign, (size_t alignment, size_t size), alignment, size)
FORWARD(void, free, (void *block), block)

static void find(void) {
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next_memalign = dlsym(RTLD_NEXT, "memalign");
}
