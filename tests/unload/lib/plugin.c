// A plugin that looks like a Python, with the functions that run.sh generates. It does not run: that answer takes 100 ms, for
// a host that sets a flag.
#include <stdlib.h>
#include <time.h>

static int calls;
// The host gets the address of these when it loads the plugin, and owns them.
static volatile int *asked;
static void (*on_unload)(void);

int Py_IsInitialized(void) {
    if (asked != NULL) {
        __atomic_store_n(asked, 1, __ATOMIC_SEQ_CST);
        struct timespec start, now;
        clock_gettime(CLOCK_MONOTONIC, &start);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 100);
    }
    return 0;
}

int call(void) { return ++calls; }

void set_host(volatile int *is_asked, void (*unload)(void)) {
    asked = is_asked;
    on_unload = unload;
}

__attribute__((destructor)) static void unload(void) {
    if (on_unload != NULL)
        on_unload();
}
