// Writes markers while system calls fail. The exit status is the number of markers that were reported as written.
//
//   write_markers COUNT: allocates, resizes and checks blocks of all sizes between the markers
//
// UNDER_LIMIT names the limit that the program runs under, as prlimit does. The program checks that it is in force.
#include "check.h"
#include <stdbool.h>

static void *do_nothing(void *unused) { return unused; }

static int count_free_descriptors(void) {
    int taken[64], count = 0;
    while (count < (int)COUNT(taken) && (taken[count] = dup(2)) >= 0)
        count++;
    for (int i = 0; i < count; i++)
        close(taken[i]);
    return count;
}

// A limit may not apply: that of threads does not apply to root.
static void check_limit(const char *limit) {
    bool may_have_threads = strcmp(limit, "nproc") != 0;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, do_nothing, NULL);
    if (error == 0)
        pthread_join(thread, NULL);
    CHECK(error == (may_have_threads ? 0 : EAGAIN), "pthread_create: %s", strerror(error));
    if (!may_have_threads || strcmp(limit, "fsize") == 0) // under fsize the governor must run, else its absence under nproc would prove nothing
        CHECK(statistic("governor", "running") == may_have_threads, "the governor under a limit of %s", limit);
    if (strcmp(limit, "as") == 0)
        CHECK_ENOMEM(200 * MB, malloc(200 * MB));
    if (strcmp(limit, "nofile") == 0)
        CHECK(count_free_descriptors() < 20, "20 descriptors are free");
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 20, written = 0;
    prctl(0x666c6172, 0, 0, 0, 0); // arms fail
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
    // By the exit status, because a write may be made to fail.
    return written;
}
