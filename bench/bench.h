/* Shared by all benchmark programs: arguments, clocks, random numbers, memory of the process. */
#ifndef BENCH_H
#define BENCH_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* The value after "--name" on the command line, or `fallback`. */
static double argument(int argc, char **argv, const char *name, double fallback) {
    for (int i = 1; i + 1 < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strcmp(argv[i] + 2, name) == 0) return atof(argv[i + 1]);
    return fallback;
}

static double clock_s(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_s(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0) {
    }
}

/* xorshift64*: the same sequence for every contender, at little cost. */
static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1DULL;
}

static uint64_t seed_for(unsigned thread) { return 0x9E3779B97F4A7C15ULL * (thread + 1); }

static double random_unit(uint64_t *state) { return (double)(next_random(state) >> 11) * 0x1p-53; }

/* Bytes of a /proc/self/status line such as "VmHWM:"; 0 if it is missing. */
static size_t status_bytes(const char *field) {
    char line[256];
    size_t kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field), "%zu", &kb);
    fclose(file);
    return kb * 1024;
}

/* Writes to each page of a block. */
static void touch(void *block, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4096) ((volatile char *)block)[at] = 1;
}

/* Prevents the compiler from removing a malloc/free pair of an unused block. */
static inline void keep(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }

#endif
