// A library with a worker thread, as OpenBLAS is. Its constructor registers fork handlers that allocate, and that stop
// and start the worker. The worker allocates and frees too.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

atomic_int handlers_prepared, handlers_ran_in_child;
static atomic_int stop;
static pthread_t worker;

static void use(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    free(block);
}

static void *work(void *unused) {
    while (!atomic_load(&stop)) {
        use(100);
        use(60000);
        use(3 << 20);
    }
    return unused;
}

static void start(void) {
    atomic_store(&stop, 0);
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        abort();
}

static void prepare(void) {
    use(3 << 20);
    atomic_store(&stop, 1);
    pthread_join(worker, NULL);
    use(60000);
    atomic_fetch_add(&handlers_prepared, 1);
}

static void in_child(void) {
    use(3 << 20);
    use(60000);
    start();
    atomic_fetch_add(&handlers_ran_in_child, 1);
}

__attribute__((constructor)) static void load(void) {
    pthread_atfork(prepare, start, in_child);
    start();
}
