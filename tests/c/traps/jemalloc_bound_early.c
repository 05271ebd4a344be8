// if the loader bound a program to jemalloc's functions before the library hid them, each works or fails cleanly, in any thread
#include "jemalloc.h"
#include <stdbool.h>

static void *call_each(void *unused) {
    bool serves = mode_is("jemalloc");
    const char *version = NULL;
    size_t len = sizeof version;
    int error = mallctl("version", &version, &len, NULL, 0);
    CHECK(error == (serves ? 0 : ENOENT), "error %d", error);
    void *block = mallocx(100, 0);
    CHECK((block != NULL) == serves, "%p", block);
    if (block != NULL) dallocx(block, 0);
    CHECK((nallocx(100, 0) >= 100) == serves, "%zu", nallocx(100, 0));
    // In both modes these functions measure and free blocks of malloc.
    for (size_t size = 100; size <= 3 * MB; size += 3 * MB - 100) {
        char *own = malloc(size);
        CHECK(sallocx(own, 0) >= size, "%zu", sallocx(own, 0));
        CHECK(xallocx(own, size, 0, 0) >= size, "%zu", xallocx(own, size, 0, 0));
        char *moved = rallocx(own, 2 * size, 0);
        CHECK((moved != NULL) == serves, "%p", (void *)moved);
        dallocx(moved != NULL ? moved : own, 0);
        sdallocx(malloc(size), size, 0);
    }
    return unused;
}

int main(void) {
    // Taking each address makes the loader bind it before any constructor runs.
    int bound = (mallctl != NULL) + (mallocx != NULL) + (sallocx != NULL) + (rallocx != NULL) + (dallocx != NULL) +
                (sdallocx != NULL) + (xallocx != NULL) + (nallocx != NULL);
    if (mode_is("bare") && bound == 0) return 0;
    CHECK(bound == 8, "%d bound", bound);
    pthread_t thread;
    call_each(NULL);
    start_threads(&thread, 1, call_each);
    join_threads(&thread, 1);
}
