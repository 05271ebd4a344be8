// What the stress program prepares where the kernel is going to refuse.
#include "stress.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

size_t mappings_held;

// As many as the program asked for: neighbours that the kernel cannot join.
static void hold_mappings(void) {
    char *pages = mmap(NULL, mappings_held * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "no room for %zu mappings", mappings_held);
    for (size_t i = 1; i < mappings_held; i += 2)
        CHECK(mprotect(pages + i * 4096, 4096, PROT_READ) == 0, "mapping %zu: %s", i, strerror(errno));
}

static void *wait_for_end(void *unused) {
    for (;;)
        pause();
    return unused;
}

// glibc loads its unwinder at the first cancellation, and aborts when it cannot.
static void load_unwinder(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
        return; // nor will there be one to cancel
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}

// glibc aborts when the stacks that it keeps, 40 MB of them, cannot be unmapped.
void expect_refusals(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 512 * KB);
    pthread_setattr_default_np(&small);
    if (wanted[CANCEL])
        load_unwinder();
    if (mappings_held > 0)
        hold_mappings();
    prctl(0x666c6172, 0, 0, 0, 0); // tests/faults/fail.c: count from here
}
