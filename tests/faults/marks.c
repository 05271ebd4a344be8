// writes markers while the system refuses; prints how many were reported written, a crash is for the caller to see
//
//   marks COUNT: blocks of all sizes are touched, resized and checked between two markers
//
// UNDER_LIMIT: the limit that it runs under, as prlimit names it, and that must be seen to bite.
#include "check.h"
#include "flarena.h"
#include <pthread.h>
#include <stdbool.h>
#include <sys/prctl.h>

static void *do_nothing(void *unused) { return unused; }

static int refused_thread(void) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, do_nothing, NULL);
    if (error == 0)
        pthread_join(thread, NULL);
    return error;
}

static int free_descriptors(void) {
    int taken[64], count = 0;
    while (count < (int)COUNT(taken) && (taken[count] = dup(2)) >= 0)
        count++;
    for (int i = 0; i < count; i++)
        close(taken[i]);
    return count;
}

// A limit that does not reach this program, as that of threads does not reach root, would show nothing.
static void check_limit(const char *limit) {
    bool may_have_threads = strcmp(limit, "nproc") != 0;
    int error = refused_thread();
    CHECK(error == (may_have_threads ? 0 : EAGAIN), "pthread_create: %s", strerror(error));
    if (!may_have_threads || strcmp(limit, "fsize") == 0) // the latter shows that else this work has a governor
        CHECK(statistic("governor", "running") == may_have_threads, "the governor under a limit of %s", limit);
    if (strcmp(limit, "as") == 0)
        CHECK_ENOMEM(200 * MB, malloc(200 * MB));
    if (strcmp(limit, "nofile") == 0)
        CHECK(free_descriptors() < 20, "any number of descriptors");
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 20, written = 0;
    prctl(0x666c6172, 0, 0, 0, 0); // fail: count from here
    for (int i = 0; i < count; i++) {
        size_t size = SIZES[(size_t)i % COUNT(SIZES)];
        unsigned char *block = calloc(1, size), *grown;
        CHECK(block == NULL || first_nonzero(block, size) == size, "calloc(%zu) is not zero", size);
        if (block != NULL) {
            stamp_pages(block, size, (unsigned)i);
            grown = realloc(block, size * 2);
            block = grown != NULL ? grown : block;
            CHECK(pages_match(block, size, (unsigned)i), "realloc from %zu lost bytes", size);
        }
        written += flarena_mark("fault", "site-1", i) == 0;
        free(block);
        if (i % 8 == 7)
            flarena_trim();
    }
    if (getenv("UNDER_LIMIT") != NULL)
        check_limit(getenv("UNDER_LIMIT"));
    // Not by stdio, and not by a write that fail may refuse.
    return written;
}
