// random calls with advice, locks, forks and trims between them corrupt no block
//
//   fuzz [SEED [STEPS]]: a failure prints its seed
#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define SLOTS 64
static struct block {
    unsigned char *start;
    size_t size;
    unsigned seed;
    int is_from_backend; // its alignment is too large for the recycler
} blocks[SLOTS];
static unsigned state, first_seed;
static size_t total;

static unsigned next(unsigned below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

// Mostly near the size boundaries of the recycler, sometimes small or huge.
static size_t random_size(void) {
    const size_t boundaries[] = {64 * KB, 1 * MB, 2 * MB, 4 * MB, 6 * MB, 10 * MB, 32 * MB};
    switch (next(8)) {
    case 0:
        return 1 + next(3000);
    case 1:
        return 1 + next(900 * 1024);
    case 2:
    case 3: {
        size_t boundary = boundaries[next(COUNT(boundaries))];
        return boundary - 5000 + next(10000);
    }
    case 4:
        return 1 + next((unsigned)(40 * MB));
    default:
        return 512 * KB + next((unsigned)(8 * MB));
    }
}

// One byte per page and the last byte; every byte of a small block.
static size_t step_of(size_t size) {
    return size > 16 * KB ? 4093 : 1;
}

static void stamp(struct block *block, size_t from) {
    size_t step = step_of(block->size);
    for (size_t at = (from + step - 1) / step * step; at < block->size; at += step)
        block->start[at] = pattern(at, block->seed);
    block->start[block->size - 1] = pattern(block->size - 1, block->seed);
}

static void verify_to(const struct block *block, size_t size, size_t step, const char *when) {
    for (size_t at = 0; at < size; at += step)
        CHECK(block->start[at] == pattern(at, block->seed), "seed %u, %s: byte %zu of a block of %zu is %d, not %d", first_seed, when,
              at, block->size, block->start[at], pattern(at, block->seed));
}

static void verify(const struct block *block, const char *when) {
    verify_to(block, block->size, step_of(block->size), when);
    unsigned char last = block->start[block->size - 1];
    CHECK(last == pattern(block->size - 1, block->seed), "seed %u, %s: the last byte of %zu is %d", first_seed, when, block->size, last);
}

static void release(struct block *block) {
    verify(block, "before free");
    total -= block->size;
    errno = EXDEV;
    if (next(8) == 0)
        block->start = realloc(block->start, 0);
    else
        free(block->start);
    CHECK(errno == EXDEV, "seed %u: free changed errno to %d", first_seed, errno);
    block->start = NULL;
}

static void obtain(struct block *block) {
    size_t size = random_size(), alignment = 16;
    int zeroed = 0;
    void *start = NULL;
    switch (next(6)) {
    case 0:
        start = calloc(1, size);
        zeroed = 1;
        break;
    case 1:
        alignment = (size_t)16 << next(19); // up to 4 MB
        CHECK(posix_memalign(&start, alignment, size) == 0, "seed %u: posix_memalign(%zu, %zu)", first_seed, alignment, size);
        break;
    default:
        start = malloc(size);
    }
    CHECK(start != NULL, "seed %u: no block of %zu with %zu live", first_seed, size, total);
    CHECK((uintptr_t)start % alignment == 0, "seed %u: %p for alignment %zu", first_seed, start, alignment);
    CHECK(malloc_usable_size(start) >= size, "seed %u: usable %zu of %zu", first_seed, malloc_usable_size(start), size);
    if (zeroed) {
        size_t dirt = first_nonzero(start, size);
        CHECK(dirt == size, "seed %u: byte %zu of calloc(%zu) is not zero", first_seed, dirt, size);
    }
    *block = (struct block){start, size, next(1 << 20), alignment > 2 * MB};
    total += size;
    stamp(block, 0);
}

static void resize(struct block *block) {
    size_t old = block->size, size = next(2) ? random_size() : old + next((unsigned)(2 * MB)) - next((unsigned)(old < 2 * MB ? old : 2 * MB));
    size_t step = step_of(old), kept = old < size ? old : size;
    unsigned char *start = realloc(block->start, size);
    CHECK(start != NULL, "seed %u: realloc from %zu to %zu", first_seed, old, size);
    *block = (struct block){start, size, block->seed, block->is_from_backend};
    total += size - old;
    verify_to(block, kept, step, "after realloc");
    stamp(block, 0);
}

static void advise(struct block *block) {
    const int advice[] = {MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_WIPEONFORK, MADV_DONTFORK, MADV_SEQUENTIAL,
                          25 /* MADV_COLLAPSE */, MADV_COLD, MADV_PAGEOUT};
    uintptr_t first = ((uintptr_t)block->start + PAGE - 1) & ~(PAGE - 1), end = ((uintptr_t)block->start + block->size) & ~(PAGE - 1);
    if (end <= first)
        return;
    unsigned pages = (unsigned)((end - first) / PAGE), skipped = next(pages);
    char *start = (char *)first + (size_t)skipped * PAGE;
    size_t length = (1 + next(pages - skipped)) * PAGE;
    int kind = next(12);
    if (kind == 10) {
        mlock(start, length < 1 * MB ? length : 1 * MB);
        if (block->size < 1 * MB) // jemalloc's free changes errno if the kernel refuses to purge locked pages
            munlock(start, length);
    } else if (kind == 11)
        mprotect(start, length, PROT_READ), mprotect(start, length, PROT_READ | PROT_WRITE);
    else if (kind < (int)COUNT(advice))
        madvise(start, length, advice[kind]);
    if (kind < 9 && (advice[kind] == MADV_WIPEONFORK || advice[kind] == MADV_DONTFORK)) {
        // The recycler removes the advice before it reuses the memory. A backend's heap would keep it.
        if (block->size >= 1 * MB && !block->is_from_backend && !mode_is("bare") && next(2)) {
            release(block);
        } else {
            madvise(start, length, MADV_KEEPONFORK);
            madvise(start, length, MADV_DOFORK);
        }
    }
}

static void step(int may_fork);

static void fork_and_check(void) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0, "seed %u: fork: %s", first_seed, strerror(errno));
    if (child == 0) {
        alarm(60);
        for (size_t i = 0; i < SLOTS; i++)
            if (blocks[i].start != NULL)
                verify(&blocks[i], "in a child");
        for (int i = 0; i < 40; i++)
            step(0);
        exit(0);
    }
    for (int i = 0; i < 10; i++)
        step(0);
    waitpid(child, &status, 0);
    CHECK(status == 0, "seed %u: child ended with status %x", first_seed, status);
}

static void step(int may_fork) {
    struct block *block = &blocks[next(SLOTS)];
    unsigned kind = next(1000);
    if (kind < 8 && may_fork)
        fork_and_check();
    else if (kind < 20)
        malloc_trim(0);
    else if (kind < 24)
        usleep(next(30000)); // gives the governor time to purge
    else if (block->start == NULL)
        total < 150 * MB ? obtain(block) : (void)0;
    else if (kind < 100)
        advise(block);
    else if (kind < 450)
        resize(block);
    else
        release(block);
}

int main(int argc, char **argv) {
    first_seed = state = argc > 1 ? (unsigned)atol(argv[1]) : 20261120;
    int steps = argc > 2 ? atoi(argv[2]) : 1500;
    for (int i = 0; i < steps; i++)
        step(1);
    for (size_t i = 0; i < SLOTS; i++)
        if (blocks[i].start != NULL)
            release(&blocks[i]);
    malloc_trim(0);
    CHECK(rss_bytes() < (long)(64 * MB), "seed %u: %ld bytes resident after all blocks were freed", first_seed, rss_bytes());
}
