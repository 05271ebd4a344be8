// fork handlers of a linked library can allocate, and join a thread that allocates
#include "check.h"
#include <stdatomic.h>

extern atomic_int handlers_prepared, handlers_ran_in_child;

static void *churn(void *stop) {
    while (!atomic_load((atomic_int *)stop)) {
        free(malloc(200));
        free(malloc(70000));
        free(malloc(5 * MB));
    }
    return NULL;
}

int main(void) {
    enum { FORKS = 60 };
    static atomic_int stop;
    alarm(90); // a hang ends in a failure
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, churn, &stop) == 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            _exit(atomic_load(&handlers_ran_in_child) == 1 ? 0 : 3);
        }
        CHECK_CHILD(pid);
    }
    CHECK(atomic_load(&handlers_prepared) == FORKS);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    fflush(NULL);
    _exit(0); // the library's worker is still running
}
