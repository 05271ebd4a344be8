// the small heap of a program that stays idle goes to swap too, heartbeats leave its blocks there, and no byte is lost
#include "flarena.h"
#include "hibernate.h"

#define SIZE (64 * MB)
#define SMALL_SIZE 1024
#define BLOCKS (48 * MB / SMALL_SIZE)

static uint64_t *small[BLOCKS];

static void fill_small(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        small[i] = malloc(SMALL_SIZE);
        for (size_t at = 0; at < SMALL_SIZE / 8; at++)
            small[i][at] = word(at, i);
    }
}

// Reads a few small blocks, as an idle program does now and then.
static void heartbeat(int beat) {
    for (size_t i = 0; i < 2048; i++)
        CHECK(small[beat * 2048 + i][7] == word(7, beat * 2048 + i), "small block %d", beat * 2048 + (int)i);
}

int main(void) {
    fill_small();
    uint64_t *block = random_block(SIZE, 7);
    await_swapped(104);
    CHECK(rss_bytes() < 32 * (long)MB, "%ld MB resident", rss_bytes() >> 20);
    for (int beat = 0; beat < 8; beat++) {
        heartbeat(beat);
        sleep_ms(500);
    }
    CHECK(swapped_mb() >= 68, "%ld MB are in swap after heartbeats", swapped_mb());
    CHECK(hibernated_mb() <= swapped_mb() + 4, "%ld MB hibernated of %ld", hibernated_mb(), swapped_mb());
    flarena_mark("receive", "site-1", 3);
    await_resident(4);
    check_words(block, SIZE, 7);
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < SMALL_SIZE / 8; at++)
            CHECK(small[i][at] == word(at, i), "small block %zu", i);
    return 0;
}
