// The expected contents of each block: a word at every `step` bytes, computed from the block's key and the offset. Bytes of
// another block or from another offset are detected.
#include "stress.h"

#define DENSE (32 * KB)     // in blocks up to this size every byte is written
#define BY_PAGE (2 * MB)    // in blocks up to this size a word in every page
#define WORDS_IN_HUGE 512   // in larger blocks about so many words

static atomic_size_t all_touched;

size_t touched_bytes(void) {
    return atomic_load(&all_touched);
}

static uint64_t word(uint64_t key, size_t at) {
    uint64_t x = (key + at) * 0x9E3779B97F4A7C15u;
    return x ^ x >> 29;
}

// Blocks begin at multiples of 8, and so do words.
typedef uint64_t __attribute__((may_alias)) word_in_block;

static size_t bytes_touched(const struct block *block) {
    return block->step <= 4096 ? block->size : block->size / block->step * 4096;
}

// A size from 2^low to 2^high; each power of two is equally likely.
static size_t about(struct worker *worker, unsigned low, unsigned high) {
    size_t power = (size_t)1 << (low + below(worker, high - low));
    return power + below(worker, power);
}

size_t random_size(struct worker *worker) {
    static const size_t boundaries[] = {64 * KB, 128 * KB, 1 * MB, 2 * MB, 4 * MB, 6 * MB};
    size_t kind = below(worker, 1000);
    if (kind < 600)
        return below(worker, 1025);
    if (kind < 850)
        return about(worker, 10, 15);
    if (kind < 940)
        return about(worker, 15, 20);
    if (kind < 965)
        return boundaries[below(worker, COUNT(boundaries))] - 5000 + below(worker, 10000);
    if (kind < 998 || !enabled[HUGE_SIZES])
        return about(worker, 20, 24);
    return one_in(worker, 8) ? about(worker, 28, 32) : about(worker, 24, 28);
}

bool try_lock(struct block *block) {
    int is_free = 0;
    return atomic_compare_exchange_strong(&block->locked, &is_free, 1);
}

// Locks a random block, mostly one of the worker's own part, so that both its own thread and others free it.
struct block *lock_block(struct worker *worker) {
    for (;;) {
        bool of_others = one_in(worker, 4);
        struct block *block = &blocks[of_others ? below(worker, block_count) : worker->first + below(worker, worker->count)];
        if (try_lock(block))
            return block;
        if (worker->in_child && one_in(worker, 1000))
            return NULL; // threads that the child does not have may hold all locks
    }
}

void unlock_block(struct block *block) {
    atomic_store(&block->locked, 0);
}

void fill_block(struct worker *worker, struct block *block) {
    atomic_fetch_sub(&all_touched, bytes_touched(block));
    block->key = (uintptr_t)block->start ^ next(worker) << 48;
    block->step = block->size <= DENSE ? 8 : block->size <= BY_PAGE ? 4088 : block->size / WORDS_IN_HUGE / 4096 * 4096 + 4088;
    atomic_fetch_add(&all_touched, bytes_touched(block));
    size_t at = 0;
    for (; at + 8 < block->size; at += block->step)
        *(word_in_block *)(block->start + at) = word(block->key, at);
    if (block->size == 0)
        return;
    for (at = block->step == 8 ? at : block->size - 1; at < block->size; at++)
        block->start[at] = (unsigned char)word(block->key, at);
}

static void check_byte(const struct block *block, size_t at, unsigned char expected, const char *when) {
    MUST(block->start[at] == expected, "%s: byte %zu of %zu at %p is %d, not %d", when, at, block->size, (void *)block->start,
         block->start[at], expected);
}

// Checks the first `bytes` of a block, which was filled at its full size.
void check_block(const struct block *block, size_t bytes, const char *when) {
    size_t at = 0;
    for (; at + 8 < block->size && at < bytes; at += block->step) {
        uint64_t value = word(block->key, at);
        if (at + 8 <= bytes) {
            uint64_t seen = *(const word_in_block *)(block->start + at);
            MUST(seen == value, "%s: word %zu of %zu at %p is %llx, not %llx", when, at, block->size, (void *)block->start,
                 (unsigned long long)seen, (unsigned long long)value);
        } else if (memcmp(block->start + at, &value, bytes - at) != 0)
            MUST(false, "%s: the last bytes of %zu at %p are wrong", when, bytes, (void *)block->start);
    }
    if (block->size > bytes || block->size == 0)
        return;
    for (at = block->step == 8 ? at : block->size - 1; at < block->size; at++)
        check_byte(block, at, (unsigned char)word(block->key, at), when);
}

void set_block(struct worker *worker, struct block *block, void *start, size_t size, size_t alignment) {
    block->start = start;
    block->size = size;
    block->alignment = alignment;
    block->hidden = false;
    block->step = 8;
    atomic_fetch_add(&all_touched, bytes_touched(block));
    fill_block(worker, block);
}

void clear_block(struct block *block) {
    atomic_fetch_sub(&all_touched, bytes_touched(block));
    block->start = NULL;
    block->size = 0;
}
