// The thread that Google's tcmalloc leaves to its program: it returns memory, and moves caches between CPUs.
#include <pthread.h>
#include <stddef.h>

extern _Bool NeedsProcessBackgroundActions(void);
extern void ProcessBackgroundActions(void);

static void *background(void *nothing) {
    ProcessBackgroundActions();
    return nothing;
}

__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    if (NeedsProcessBackgroundActions() && pthread_create(&thread, NULL, background, NULL) == 0) pthread_detach(thread);
}
