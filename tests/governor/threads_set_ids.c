// two threads that call setgid at the same time, after the process has dropped capabilities, both get the kernel's answer
#include "capabilities.h"

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
    start_governor();
    drop_capabilities();
    pthread_barrier_init(&barrier, NULL, 2);
    start_threads(threads, 2, set_group);
    join_threads(threads, 2);
}
