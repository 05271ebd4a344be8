// new threads whose first allocation finds no addresses left get NULL and ENOMEM
// qemu's user mode does not enforce RLIMIT_AS
#include "check.h"

static volatile int exhausted;

static void *first_allocation(void *number) {
    size_t size = (size_t[]){16, 1000, 20000, 100 * KB}[(long)number % 4];
    while (!exhausted)
        sleep_ms(1);
    for (int round = 0; round < 100; round++) {
        errno = 0;
        char *block = (long)number % 3 != 0 ? malloc(size) : calloc(1, size);
        CHECK(block != NULL || errno == ENOMEM, "errno %d", errno);
        if (block != NULL)
            memset(block, 1, size);
        free(block);
    }
    return NULL;
}

int main(int argc, char **argv) {
    restart_with_limit(argc, argv, RLIMIT_AS, 1000 * MB);
    pthread_t threads[16];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * KB);
    for (long i = 0; i < 16; i++)
        CHECK(pthread_create(&threads[i], &small, first_allocation, (void *)i) == 0, "thread %ld", i);
    // jemalloc reports on stderr that it has no memory for a thread's cache.
    int quiet = open("/dev/null", O_WRONLY);
    CHECK(dup2(quiet, 2) == 2, "dup2: %s", strerror(errno));
    // This thread allocates a small block, and then maps all remaining addresses.
    free(malloc(100));
    for (size_t size = 64 * MB; size >= 4096; size /= 2)
        while (mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            ;
    exhausted = 1;
    for (long i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
}
