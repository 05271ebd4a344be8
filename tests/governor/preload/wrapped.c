// the governor starts from inside a malloc of a profiler that wraps pthread_create, and is none of the threads it counts
#include "check.h"

#include <pthread.h>

void profiler_records(size_t bytes);
int profiler_threads(void);

static void *nothing(void *argument) {
    return argument;
}

int main(void) {
    for (int round = 0; round < 100; round++)
        profiler_records(40 * MB);
    await_governor();
    CHECK(profiler_threads() == 0, "%d threads seen", profiler_threads());
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    CHECK(profiler_threads() == 1, "%d threads seen after one of the program's", profiler_threads());
    return 0;
}
