// threads with the smallest stack that is allowed can allocate and free every size
#include "check.h"

static void *work(void *unused) {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        char *block = malloc(SIZES[i]), *zeroed = calloc(1, SIZES[i]);
        block[0] = zeroed[0] = 1;
        block = realloc(block, SIZES[i] * 2);
        free(block);
        free(zeroed);
    }
    return unused;
}

int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    long minimum = sysconf(_SC_THREAD_STACK_MIN);
    CHECK(pthread_attr_setstacksize(&small, (size_t)minimum) == 0, "stack of %ld bytes", minimum);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, &small, work, NULL);
        CHECK(error == 0, "pthread_create: %s", strerror(error));
        pthread_join(thread, NULL);
    }
}
