// a profiler that wraps pthread_create, and mallocs under its lock, neither hangs at the governor's start nor counts its thread
#include "check.h"

// Not recursive: a second lock in the same thread hangs.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int threads;

static void allocate(size_t count, size_t bytes) {
    pthread_mutex_lock(&lock);
    allocate_and_free(count, bytes);
    pthread_mutex_unlock(&lock);
}

// Stands between the library and libc.
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*body)(void *), void *restrict argument) {
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    allocate(1, 4 * MB);
    threads++;
    return next(thread, attributes, body, argument);
}

static void *do_nothing(void *argument) {
    return argument;
}

int main(void) {
    for (int round = 0; round < 100; round++)
        allocate(2, 40 * MB);
    await_governor();
    CHECK(threads == 0, "%d threads seen", threads);
    pthread_t thread;
    start_threads(&thread, 1, do_nothing);
    join_threads(&thread, 1);
    CHECK(threads == 1, "%d threads seen after the program started one", threads);
}
