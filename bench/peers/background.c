// Google's tcmalloc expects the program to run this thread, which returns memory and moves caches between CPUs.
#include <pthread.h>
#include <stddef.h>

extern _Bool NeedsProcessBackgroundActions(void);
extern void ProcessBackgroundActions(void);

static void *background(void *unused) {
    ProcessBackgroundActions();
    return unused;
}

__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    if (NeedsProcessBackgroundActions() && pthread_create(&thread, NULL, background, NULL) == 0) pthread_detach(thread);
}
