// a profiler that wraps pthread_create, and mallocs under its lock, neither hangs at the governor's start nor counts its thread
#include "check.h"

void profiler_records(size_t bytes);
int profiler_threads(void);

static void *do_nothing(void *argument) {
    return argument;
}

int main(void) {
    for (int round = 0; round < 100; round++)
        profiler_records(40 * MB);
    await_governor();
    CHECK(profiler_threads() == 0, "%d threads seen", profiler_threads());
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, do_nothing, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    CHECK(profiler_threads() == 1, "%d threads seen after the program started one", profiler_threads());
}
