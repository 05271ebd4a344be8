// A library: a profiler that wraps pthread_create. It holds a lock in the wrapper, and while it calls malloc.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Not recursive: a second lock in the same thread hangs.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    pthread_mutex_lock(&lock);
    free(memset(malloc(4 << 20), 1, 4 << 20));
    count++;
    pthread_mutex_unlock(&lock);
    return next(thread, attributes, body, argument);
}

// Allocates the profiler's records under its lock.
void profiler_records(size_t bytes) {
    pthread_mutex_lock(&lock);
    char *records = malloc(bytes);
    memset(records, 1, bytes);
    char *more = malloc(bytes);
    memset(more, 1, bytes);
    free(records);
    free(more);
    pthread_mutex_unlock(&lock);
}

int profiler_threads(void) {
    return count;
}
