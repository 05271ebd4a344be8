// Prepares the stress program for system calls that will be made to fail.
#include "stress.h"

size_t mappings_held;

// Holds --mappings=N mappings, which the kernel cannot merge because neighbours differ.
static void hold_mappings(void) {
    char *pages = mmap(NULL, mappings_held * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "no addresses for %zu mappings", mappings_held);
    for (size_t i = 1; i < mappings_held; i += 2)
        CHECK(mprotect(pages + i * 4096, 4096, PROT_READ) == 0, "mapping %zu: %s", i, strerror(errno));
}

static void *wait_for_end(void *unused) {
    for (;;)
        pause();
    return unused;
}

// glibc loads its unwinder at the first cancellation and aborts if that fails. This loads it before calls fail.
static void load_unwinder(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
        return; // without threads there are no cancellations
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}

// Small stacks, because glibc caches 40 MB of stacks and aborts if it cannot unmap the rest.
void prepare_for_failures(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 512 * KB);
    pthread_setattr_default_np(&small);
    if (enabled[CANCEL])
        load_unwinder();
    if (mappings_held > 0)
        hold_mappings();
    prctl(0x666c6172, 0, 0, 0, 0); // arms tests/faults/fail.c
}
