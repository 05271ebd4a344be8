// What every test program includes: assertions that tell what they saw, and the proof, before
// main, that the malloc in use is the one that run.sh asked for (TEST_MODE: glibc, jemalloc, or
// bare for no preload at all).
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)
#define GB ((size_t)1 << 30)
#define COUNT(array) (sizeof(array) / sizeof *(array))

// CHECK(condition, "what was %s", seen): tells and exits 1 unless the condition holds.
#define CHECK(condition, ...)                                                      \
    do {                                                                           \
        if (!(condition)) {                                                        \
            dprintf(2, "%s:%d: not true: %s; saw: ", __FILE__, __LINE__, #condition); \
            dprintf(2, __VA_ARGS__);                                               \
            dprintf(2, "\n");                                                      \
            _exit(1);                                                              \
        }                                                                          \
    } while (0)

// SKIP("why"): what cannot be seen here is not a failure.
#define SKIP(why)                \
    do {                         \
        dprintf(2, "%s\n", why); \
        _exit(77);               \
    } while (0)

// Both sides of every border: size classes, page, huge page, recycler.
static const size_t SIZES[] = {1, 8, 16, 24, 100, 1000, 4096, 5000, 64 * KB, 128 * KB, 1 * MB - 1, 1 * MB,
                               2 * MB - 1, 2 * MB, 2 * MB + 1, 3 * MB + 12345, 33 * MB};

__attribute__((unused)) static int mode_is(const char *mode) {
    const char *asked = getenv("TEST_MODE");
    return asked != NULL && strcmp(asked, mode) == 0;
}

// A pattern that differs by seed and by place, so that moved or mixed bytes show.
__attribute__((unused)) static unsigned char pattern(size_t at, unsigned seed) {
    return (unsigned char)(at * 31 + (at >> 12) * 7 + seed * 131 + 1);
}

__attribute__((unused)) static void fill(void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at++)
        ((unsigned char *)block)[at] = pattern(at, seed);
}

// The first place where the block differs from the pattern, or size when it holds it all.
__attribute__((unused)) static size_t first_wrong(const void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at++)
        if (((const unsigned char *)block)[at] != pattern(at, seed))
            return at;
    return size;
}

// The same with a byte in each page: enough where pages are what can get lost.
__attribute__((unused)) static void stamp_pages(void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at += 4093)
        ((unsigned char *)block)[at] = pattern(at, seed);
}

__attribute__((unused)) static int pages_hold(const void *block, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at += 4093)
        if (((const unsigned char *)block)[at] != pattern(at, seed))
            return 0;
    return 1;
}

__attribute__((unused)) static size_t first_nonzero(const void *block, size_t size) {
    for (size_t at = 0; at < size; at++)
        if (((const unsigned char *)block)[at] != 0)
            return at;
    return size;
}

// A number from a "Name:  123 kB" line of /proc/self/FILE, in bytes or as it stands; -1 without one.
__attribute__((unused)) static long proc_number(const char *file, const char *name) {
    char line[256];
    long value = -1;
    snprintf(line, sizeof line, "/proc/self/%s", file);
    FILE *lines = fopen(line, "re");
    if (lines == NULL)
        return -1;
    while (fgets(line, sizeof line, lines) != NULL) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            value = atol(line + length + 1) * (strstr(line, " kB") != NULL ? 1024 : 1);
            break;
        }
    }
    fclose(lines);
    return value;
}

// Resident bytes, exact: smaps_rollup walks the page tables, /proc/self/status may lag.
__attribute__((unused)) static long rss_bytes(void) {
    long rss = proc_number("smaps_rollup", "Rss");
    return rss >= 0 ? rss : proc_number("status", "VmRSS");
}

__attribute__((unused)) static const char *library_of(void *address) {
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fname : "(nothing)";
}

__attribute__((unused)) static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

#ifndef NO_OWNER_PROOF
__attribute__((constructor)) static void prove_owner(void) {
    const char *owner = library_of(dlsym(RTLD_DEFAULT, "malloc"));
    if (mode_is("bare")) {
        CHECK(!ends_with(owner, "libflarena.so"), "malloc of %s", owner);
        return;
    }
    CHECK(mode_is("glibc") || mode_is("jemalloc"), "TEST_MODE=%s", getenv("TEST_MODE"));
    CHECK(ends_with(owner, "libflarena.so"), "malloc of %s", owner);
    const char *(*allocator)(void);
    *(void **)&allocator = dlsym(RTLD_DEFAULT, "flarena_allocator");
    CHECK(allocator != NULL, "no flarena_allocator");
    CHECK(mode_is(allocator()), "allocator %s in mode %s", allocator(), getenv("TEST_MODE"));
}
#endif
