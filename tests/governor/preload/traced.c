// functions of libc that a tracer replaces may allocate: the library holds no lock while it calls one
#include "check.h"

#include <pthread.h>

int traced_calls(void);

static void *churn(void *unused) {
    (void)unused;
    for (int round = 0; round < 200; round++) {
        char *small = malloc_touched(3000 + (size_t)round * 100, 1), *large = malloc_touched(2 * MB + (size_t)round * 4096, 1);
        free(small);
        large = (char *)realloc(large, 5 * MB);
        free(large);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    malloc_trim(0);
    int before = traced_calls();
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && now.tv_sec + now.tv_nsec > 0);
    CHECK(traced_calls() > before, "the tracer does not come before libc");
    return 0;
}
