// two threads that call setgid at the same time, after the process has dropped capabilities, both get the kernel's answer
#include "capabilities.h"

#include <pthread.h>

static pthread_barrier_t barrier;

static void *set_group(void *unused) {
    pthread_barrier_wait(&barrier);
    CHECK(setgid(1234) == -1 && errno == EPERM, "setgid: errno %d", errno);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    if (geteuid() != 0)
        SKIP("needs root to have capabilities");
    grow();
    drop_capabilities();
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, set_group, NULL) == 0, "no thread");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
