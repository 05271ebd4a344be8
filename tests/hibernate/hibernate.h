// Helpers for this suite: blocks of random words, the size in swap, and waits that do not count as work.
#pragma once

#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

// Random words, so that the kernel can neither compress nor merge the pages.
static inline uint64_t word(uint64_t at, uint64_t seed) {
    uint64_t z = (at + seed) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 27);
}

static inline uint64_t *random_block(size_t bytes, uint64_t seed) {
    uint64_t *block = (uint64_t *)malloc(bytes);
    CHECK(block != NULL, "malloc of %zu MB failed", bytes / MB);
    for (size_t at = 0; at < bytes / 8; at++)
        block[at] = word(at, seed);
    // The governor starts in a call of the program.
    for (int i = 0; i < 4; i++)
        free(malloc(2 * MB));
    return block;
}

static inline void check_words(const uint64_t *block, size_t bytes, uint64_t seed) {
    for (size_t at = 0; at < bytes / 8; at++)
        CHECK(block[at] == word(at, seed), "word %zu of %zu", at, bytes / 8);
}

static inline long swapped_mb(void) {
    return proc_number("status", "VmSwap") >> 20;
}

// Sleeps until so much is in swap. The checks use too little CPU to count as work.
static inline void await_swapped(long mb) {
    for (int fifth = 0; fifth < 300 && swapped_mb() < mb; fifth++)
        sleep_ms(200);
    CHECK(swapped_mb() >= mb, "%ld MB are in swap, not %ld", swapped_mb(), mb);
}

static inline void await_resident(long mb) {
    for (int fifth = 0; fifth < 200 && swapped_mb() > mb; fifth++)
        sleep_ms(200);
    CHECK(swapped_mb() <= mb, "%ld MB are still in swap", swapped_mb());
}

// hibernated_bytes of the statistics in MB, or -1 for null.
static inline long hibernated_mb(void) {
    static char json[1 << 16];
    int (*stats)(char *, size_t);
    *(void **)&stats = dlsym(RTLD_DEFAULT, "flarena_stats_json");
    CHECK(stats != NULL && stats(json, sizeof json) < (int)sizeof json, "flarena_stats_json is missing or failed");
    const char *found = strstr(json, "\"hibernated_bytes\":");
    CHECK(found != NULL, "no hibernated_bytes in %s", json);
    found += strlen("\"hibernated_bytes\":");
    return strncmp(found, "null", 4) == 0 ? -1 : atol(found) >> 20;
}

// Pages are in swap before the madvise call returns and the library counts them, so the counter may lag.
static inline void await_hibernated(long mb) {
    for (int fifth = 0; fifth < 300 && hibernated_mb() < mb; fifth++)
        sleep_ms(200);
    CHECK(hibernated_mb() >= mb, "%ld MB hibernated, not %ld", hibernated_mb(), mb);
}

// Checks that every page is in memory.
static inline void check_resident(const void *block, size_t bytes) {
    static unsigned char pages[64 * MB / 4096];
    CHECK(bytes / 4096 <= sizeof pages && mincore((void *)block, bytes, pages) == 0, "mincore: %s", strerror(errno));
    for (size_t page = 0; page < bytes / 4096; page++)
        CHECK(pages[page] & 1, "page %zu of %zu is not in memory", page, bytes / 4096);
}
