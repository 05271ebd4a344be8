// two threads that call setgid at the same time, after the process has dropped capabilities, both get the kernel's answer
#include "check.h"

#include <linux/capability.h>
#include <pthread.h>
#include <sys/syscall.h>

static pthread_barrier_t barrier;

static void *set_group(void *unused) {
    pthread_barrier_wait(&barrier);
    CHECK(setgid(1234) == -1 && errno == EPERM, "setgid: errno %d", errno);
    return unused;
}

int main(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0, 0, 0}, {0, 0, 0}};
    pthread_t threads[2];
    if (geteuid() != 0)
        SKIP("needs root to have capabilities");
    free_most(small_heap(100 * MB));
    if (!mode_is("bare"))
        await_governor();
    CHECK(syscall(SYS_capset, &header, sets) == 0, "capset: %d", errno);
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, set_group, NULL) == 0, "no thread");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
