// holder live|free|late|once|file MEGABYTES [FILE]: holds memory until stdin ends. late: as live, but allocates after it prints ready.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK 1000

static void *must(void *pointer) {
    if (pointer == NULL || pointer == MAP_FAILED) exit(1);
    return pointer;
}

static void fill(char **held, size_t count) {
    for (size_t i = 0; i < count; i++) memset(held[i] = must(malloc(BLOCK)), 1, BLOCK);
}

// Keeps the last block, so that the heap does not shrink by itself.
static void empty(char **held, size_t count) {
    for (size_t i = 0; i + 1 < count; i++) free(held[i]);
}

static void read_file(const char *name, size_t size) {
    int file = open(name, O_RDONLY);
    const char *map = must(mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0));
    volatile char sum = 0;
    for (size_t i = 0; i < size; i += 4096) sum += map[i];
}

static char *volatile kept;

static void say_ready(void) {
    puts("ready");
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    size_t size = strtoul(arguments[2], NULL, 10) << 20;
    size_t blocks = size / BLOCK;
    if (strcmp(arguments[1], "file") == 0) {
        read_file(arguments[3], size);
    } else if (strcmp(arguments[1], "once") == 0) {
        kept = memset(must(malloc(size)), 1, size);
    } else {
        int is_late = strcmp(arguments[1], "late") == 0;
        if (is_late) {
            say_ready();
            usleep(300000);
        }
        char **held = must(malloc(blocks * sizeof *held));
        fill(held, blocks);
        // The governor starts at one free in some thousands, so free each block once.
        empty(held, blocks);
        if (is_late || strcmp(arguments[1], "live") == 0) fill(held, blocks - 1);
    }
    say_ready();
    while (getchar() != EOF) {
    }
    return 0;
}
