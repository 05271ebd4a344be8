// What the programs of this suite share: blocks of random words, how much is in swap, and rest that is no work.
#pragma once

#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

// Of nothing that a kernel could compress or merge.
static inline uint64_t word(uint64_t at, uint64_t seed) {
    uint64_t z = (at + seed) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 27);
}

static inline uint64_t *random_block(size_t bytes, uint64_t seed) {
    uint64_t *block = (uint64_t *)malloc(bytes);
    CHECK(block != NULL, "no %zu MB", bytes / MB);
    for (size_t at = 0; at < bytes / 8; at++)
        block[at] = word(at, seed);
    // Calls of the program's are what the governor starts from.
    for (int i = 0; i < 4; i++)
        free(malloc(2 * MB));
    return block;
}

static inline void holds(const uint64_t *block, size_t bytes, uint64_t seed) {
    for (size_t at = 0; at < bytes / 8; at++)
        CHECK(block[at] == word(at, seed), "word %zu of %zu", at, bytes / 8);
}

static inline long swapped_mb(void) {
    return proc_number("status", "VmSwap") >> 20;
}

// Rests until so much is in swap: each look is far below what counts as work.
static inline void await_out(long mb) {
    for (int fifth = 0; fifth < 75 && swapped_mb() < mb; fifth++)
        sleep_ms(200);
    CHECK(swapped_mb() >= mb, "%ld MB are out, not %ld", swapped_mb(), mb);
}

static inline void await_back(long mb) {
    for (int fifth = 0; fifth < 200 && swapped_mb() > mb; fifth++)
        sleep_ms(200);
    CHECK(swapped_mb() <= mb, "%ld MB are still out", swapped_mb());
}

// As the statistics tell; -1 for null.
static inline long hibernated_mb(void) {
    static char json[1 << 16];
    int (*stats)(char *, size_t);
    *(void **)&stats = dlsym(RTLD_DEFAULT, "flarena_stats_json");
    CHECK(stats != NULL && stats(json, sizeof json) < (int)sizeof json, "no statistics");
    const char *found = strstr(json, "\"hibernated_bytes\":");
    CHECK(found != NULL, "no hibernated_bytes in %s", json);
    found += strlen("\"hibernated_bytes\":");
    return strncmp(found, "null", 4) == 0 ? -1 : atol(found) >> 20;
}

// A stride is in swap before the call that put it there returns and it is counted.
static inline void await_hibernated(long mb) {
    for (int fifth = 0; fifth < 75 && hibernated_mb() < mb; fifth++)
        sleep_ms(200);
    CHECK(hibernated_mb() >= mb, "%ld MB hibernated, not %ld", hibernated_mb(), mb);
}

// Every page is in memory.
static inline void is_resident(const void *block, size_t bytes) {
    static unsigned char pages[64 * MB / 4096];
    CHECK(bytes / 4096 <= sizeof pages && mincore((void *)block, bytes, pages) == 0, "mincore: %s", strerror(errno));
    for (size_t page = 0; page < bytes / 4096; page++)
        CHECK(pages[page] & 1, "page %zu of %zu is out", page, bytes / 4096);
}
