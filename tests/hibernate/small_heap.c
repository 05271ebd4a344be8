// the small heap and files of a program that stays idle leave its memory too, heartbeats leave its blocks in swap, and no byte is lost
#include "flarena.h"
#include "hibernate.h"
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define SIZE (64 * MB)
#define SMALL_SIZE 1024
#define BLOCKS (48 * MB / SMALL_SIZE)
#define FILE_SIZE (24 * MB)
#define FILE_PAGES (FILE_SIZE / 2 / page_size)

static uint64_t *small[BLOCKS];
static size_t page_size;
static int is_on_a_disk;

static void fill_small(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        small[i] = malloc(SMALL_SIZE);
        for (size_t at = 0; at < SMALL_SIZE / 8; at++)
            small[i][at] = word(at, i);
    }
}

// Maps a file as the loader maps a library: privately, with one executable page.
static uint64_t *map_file(void) {
    FILE *file = tmpfile();
    CHECK(file != NULL, "tmpfile: %s", strerror(errno));
    for (uint64_t at = 0, value; at < FILE_SIZE / 8; at++) {
        value = word(at, 5);
        fwrite(&value, sizeof value, 1, file);
    }
    fflush(file);
    // Dirty pages stay in the page cache, so the file is written to disk first.
    CHECK(fsync(fileno(file)) == 0, "fsync: %s", strerror(errno));
    struct stat found;
    CHECK(fstat(fileno(file), &found) == 0, "fstat: %s", strerror(errno));
    is_on_a_disk = major(found.st_dev) != 0;
    uint64_t *map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
    CHECK(mmap(NULL, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) != MAP_FAILED, "mmap with PROT_EXEC: %s",
          strerror(errno));
    for (uint64_t at = FILE_SIZE / 16; at < FILE_SIZE / 8; at++)
        map[at] = word(at, 6);
    return map;
}

// The mapped pages of the half that was not written.
static size_t mapped_pages(const void *file) {
    static uint64_t entries[FILE_SIZE / 4096];
    int pagemap = open("/proc/self/pagemap", O_RDONLY);
    off_t at = (uintptr_t)file / page_size * 8;
    size_t wanted = FILE_PAGES * 8, count = 0;
    CHECK(pread(pagemap, entries, wanted, at) == (ssize_t)wanted, "pagemap: %s", strerror(errno));
    close(pagemap);
    for (size_t page = 0; page < FILE_PAGES; page++)
        count += entries[page] >> 63;
    return count;
}

static size_t cached_pages(const void *file) {
    static unsigned char pages[FILE_SIZE / 4096];
    size_t count = 0;
    CHECK(mincore((void *)file, FILE_SIZE / 2, pages) == 0, "mincore: %s", strerror(errno));
    for (size_t page = 0; page < FILE_PAGES; page++)
        count += pages[page] & 1;
    return count;
}

static void await_pages(size_t (*pages)(const void *), const void *file, size_t wanted) {
    for (int fifth = 0; fifth < 50 && pages(file) != wanted; fifth++)
        sleep_ms(200);
    size_t found = pages(file);
    CHECK(found == wanted, "%zu pages of the file, not %zu", found, wanted);
}

static void heartbeat(int beat) {
    for (size_t i = 0; i < 2048; i++)
        CHECK(small[beat * 2048 + i][7] == word(7, beat * 2048 + i), "small block %d", beat * 2048 + (int)i);
}

int main(void) {
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    fill_small();
    uint64_t *file = map_file(), *block = random_block(SIZE, 7), sum = 0;
    for (uint64_t at = 0; at < FILE_SIZE / 16; at++)
        sum += file[at];
    CHECK(sum != 0 && mapped_pages(file) == FILE_PAGES, "the file is not mapped");
    await_swapped(116);
    // Files of tmpfs and of network file systems stay mapped.
    await_pages(mapped_pages, file, is_on_a_disk ? 0 : FILE_PAGES);
    await_pages(cached_pages, file, FILE_PAGES);
    CHECK(rss_bytes() < 32 * (long)MB, "%ld MB resident", rss_bytes() >> 20);
    for (int beat = 0; beat < 8; beat++) {
        heartbeat(beat);
        sleep_ms(500);
    }
    CHECK(swapped_mb() >= 80, "%ld MB are in swap after heartbeats", swapped_mb());
    CHECK(hibernated_mb() <= swapped_mb() + 4, "%ld MB hibernated of %ld", hibernated_mb(), swapped_mb());
    flarena_mark("receive", "site-1", 3);
    await_resident(4);
    check_words(block, SIZE, 7);
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < SMALL_SIZE / 8; at++)
            CHECK(small[i][at] == word(at, i), "small block %zu", i);
    for (uint64_t at = 0; at < FILE_SIZE / 8; at++)
        CHECK(file[at] == word(at, at < FILE_SIZE / 16 ? 5 : 6), "word %lu of the file", (unsigned long)at);
    return 0;
}
