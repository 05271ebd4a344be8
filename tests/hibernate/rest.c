// when a program stays idle its small heap and files follow, which the kernel still has, heartbeats leave its blocks out, and nothing is lost
#include "flarena.h"
#include "hibernate.h"

#define SIZE (64 * MB)
#define SMALL_SIZE 1024
#define BLOCKS (48 * MB / SMALL_SIZE)
#define FILE_SIZE (8 * MB)

static uint64_t *small[BLOCKS];

static void fill_small(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        small[i] = malloc(SMALL_SIZE);
        for (size_t at = 0; at < SMALL_SIZE / 8; at++)
            small[i][at] = word(at, i);
    }
}

// Mapped as the loader maps a library: what is written stays with the process.
static uint64_t *map_file(void) {
    FILE *file = tmpfile();
    CHECK(file != NULL, "tmpfile: %s", strerror(errno));
    for (uint64_t at = 0, value; at < FILE_SIZE / 8; at++) {
        value = word(at, 5);
        fwrite(&value, sizeof value, 1, file);
    }
    fflush(file);
    uint64_t *map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
    for (uint64_t at = FILE_SIZE / 16; at < FILE_SIZE / 8; at++)
        map[at] = word(at, 6);
    return map;
}

static size_t mapped_pages(const void *start, size_t bytes) {
    static uint64_t entries[FILE_SIZE / 4096];
    int pagemap = open("/proc/self/pagemap", O_RDONLY);
    off_t at = (uintptr_t)start / 4096 * 8;
    size_t wanted = bytes / 4096 * 8, count = 0;
    CHECK(pread(pagemap, entries, wanted, at) == (ssize_t)wanted, "pagemap: %s", strerror(errno));
    close(pagemap);
    for (size_t page = 0; page < bytes / 4096; page++)
        count += entries[page] >> 63;
    return count;
}

static size_t cached_pages(const void *start, size_t bytes) {
    static unsigned char pages[FILE_SIZE / 4096];
    size_t count = 0;
    CHECK(mincore((void *)start, bytes, pages) == 0, "mincore: %s", strerror(errno));
    for (size_t page = 0; page < bytes / 4096; page++)
        count += pages[page] & 1;
    return count;
}

static void await_pages(size_t (*pages)(const void *, size_t), const void *file, size_t wanted) {
    for (int fifth = 0; fifth < 50 && pages(file, FILE_SIZE / 2) != wanted; fifth++)
        sleep_ms(200);
    size_t found = pages(file, FILE_SIZE / 2);
    CHECK(found == wanted, "%zu pages of the file, not %zu", found, wanted);
}

static void heartbeat(int beat) {
    for (size_t i = 0; i < 2048; i++)
        CHECK(small[beat * 2048 + i][7] == word(7, beat * 2048 + i), "small block %d", beat * 2048 + (int)i);
}

int main(void) {
    fill_small();
    uint64_t *file = map_file(), *block = random_block(SIZE, 7), sum = 0;
    for (uint64_t at = 0; at < FILE_SIZE / 16; at++)
        sum += file[at];
    CHECK(sum != 0 && mapped_pages(file, FILE_SIZE / 2) == FILE_SIZE / 2 / 4096, "the file is not mapped");
    await_out(108);
    CHECK(rss_bytes() < 32 * (long)MB, "%ld MB resident", rss_bytes() >> 20);
    await_pages(mapped_pages, file, 0);
    await_pages(cached_pages, file, FILE_SIZE / 2 / 4096);
    for (int beat = 0; beat < 8; beat++) {
        heartbeat(beat);
        sleep_ms(500);
    }
    CHECK(swapped_mb() >= 80, "%ld MB are out after heartbeats", swapped_mb());
    CHECK(hibernated_mb() <= swapped_mb() + 4, "%ld MB hibernated of %ld", hibernated_mb(), swapped_mb());
    flarena_mark("receive", "site-1", 3);
    await_back(4);
    holds(block, SIZE, 7);
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < SMALL_SIZE / 8; at++)
            CHECK(small[i][at] == word(at, i), "small block %zu", i);
    for (uint64_t at = 0; at < FILE_SIZE / 8; at++)
        CHECK(file[at] == word(at, at < FILE_SIZE / 16 ? 5 : 6), "word %lu of the file", (unsigned long)at);
    return 0;
}
