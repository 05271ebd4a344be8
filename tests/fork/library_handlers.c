// fork handlers of a linked library can allocate, and join a thread that allocates
#include "check.h"
#include <stdatomic.h>

enum { FORKS = 40 };
extern atomic_int handlers_prepared, handlers_ran_in_child;
static atomic_int stop;

static void *churn(void *unused) {
    while (!atomic_load(&stop)) {
        free(malloc(200));
        free(malloc(70000));
        free(malloc(5 * MB));
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    start_threads(&thread, 1, churn);
    for (int i = 0; i < FORKS; i++)
        IN_CHILD CHECK(atomic_load(&handlers_ran_in_child) == 1);
    CHECK(atomic_load(&handlers_prepared) == FORKS);
    atomic_store(&stop, 1);
    join_threads(&thread, 1);
    fflush(NULL);
    _exit(0); // the library's worker is still running
}
