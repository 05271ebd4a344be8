// Calls every function of the malloc family and checks each result: address, alignment, usable size, zeros, errno.
#include "jemalloc.h"
#include "stress.h"

extern void cfree(void *block) __attribute__((weak));
extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

static bool is_jemalloc;

__attribute__((constructor)) static void find_mode(void) {
    is_jemalloc = mode_is("jemalloc");
}

// Counts as a call of the family, because jemalloc takes a lock for it that a fork in a handler would wait for.
static bool is_from_jemalloc(void *start) {
    unsigned arena;
    size_t length = sizeof arena;
    int error = -1;
    if (is_jemalloc)
        CALL(error = mallctl("arenas.lookup", &arena, &length, &start, sizeof start));
    return error == 0;
}

// The recycler's blocks begin at multiples of 2 MiB. So do some of glibc's heap, which lies below the break, and some of
// jemalloc, which can be asked for them.
bool is_from_recycler(const struct block *block) {
    const char *recycle = getenv("FLARENA_RECYCLE");
    void *start = block->start;
    return !mode_is("bare") && (recycle == NULL || strcmp(recycle, "off") != 0) && block->size >= 1 * MB &&
           block->alignment <= 2 * MB && (uintptr_t)start % (2 * MB) == 0 && start > sbrk(0) && !is_from_jemalloc(start);
}

// Whether the call returned NULL. That is allowed only with ENOMEM, and only for a large size or while calls fail.
static bool has_failed(const void *start, size_t size, const char *call) {
    if (start != NULL)
        return false;
    MUST(errno == ENOMEM, "%s(%zu) is NULL with errno %d", call, size, errno);
    MUST(failures_expected || size >= 256 * MB, "%s(%zu) is NULL with %zu MB touched", call, size, touched_bytes() / MB);
    return true;
}

static void check_zeros(struct worker *worker, const unsigned char *start, size_t size) {
    size_t step = size <= 64 * KB ? 1 : size <= 32 * MB ? 1021 : size / 4096;
    for (size_t at = size <= 64 * KB ? 0 : below(worker, step); at < size; at += step)
        MUST(start[at] == 0, "byte %zu of %zu at %p is %d, not zero", at, size, (void *)start, start[at]);
}

static size_t round_up(size_t size, size_t to) {
    return (size + to - 1) / to * to;
}

// From 8 bytes to 4 MiB.
static size_t random_alignment(struct worker *worker) {
    return (size_t)8 << below(worker, one_in(worker, 8) ? 20 : 10);
}

void obtain(struct worker *worker, struct block *block) {
    size_t size = random_size(worker), alignment = 1;
    void *start = NULL;
    bool zeroed = false;
    const char *call = "malloc";
    errno = 0;
    switch (below(worker, 16)) {
    case 0:
    case 1: {
        size_t count = one_in(worker, 2) ? 1 : 1 + below(worker, 32);
        size = round_up(size, count);
        call = "calloc";
        zeroed = true;
        CALL(start = calloc(count, size / count));
        break;
    }
    case 2:
        call = "realloc(NULL)";
        CALL(start = realloc(NULL, size));
        break;
    case 3:
        call = "reallocarray";
        size = round_up(size, 24);
        CALL(start = reallocarray(NULL, size / 24, 24));
        break;
    case 4: {
        alignment = random_alignment(worker);
        call = "posix_memalign";
        int error;
        CALL(error = posix_memalign(&start, alignment, size));
        errno = error;
        break;
    }
    case 5:
        alignment = random_alignment(worker);
        call = "aligned_alloc";
        size = round_up(size, alignment);
        CALL(start = aligned_alloc(alignment, size));
        break;
    case 6:
        alignment = random_alignment(worker);
        call = "memalign";
        CALL(start = memalign(alignment, size));
        break;
    case 7:
        alignment = 4096;
        call = one_in(worker, 2) ? "valloc" : "pvalloc";
        CALL(start = call[0] == 'v' ? valloc(size) : pvalloc(size));
        break;
    case 8:
        if (is_jemalloc) {
            alignment = one_in(worker, 2) ? 8 : random_alignment(worker);
            zeroed = one_in(worker, 2);
            call = "mallocx";
            size += size == 0; // jemalloc leaves mallocx(0) undefined
            size_t promised;
            CALL(promised = nallocx(size, 0));
            MUST(promised >= size, "nallocx(%zu): %zu", size, promised);
            CALL(start = mallocx(size, __builtin_ctzl(alignment) | (zeroed ? 0x40 : 0)));
            errno = start == NULL ? ENOMEM : errno;
            break;
        }
        // fallthrough
    default:
        alignment = size < 16 ? 8 : 16;
        CALL(start = malloc(size));
    }
    if (has_failed(start, size, call))
        return;
    size_t usable;
    CALL(usable = malloc_usable_size(start));
    MUST((uintptr_t)start % alignment == 0, "%s(%zu) is %p for alignment %zu", call, size, start, alignment);
    MUST(usable >= size, "%s(%zu) has %zu usable bytes", call, size, usable);
    if (zeroed)
        check_zeros(worker, start, size);
    // A program may use all bytes of malloc_usable_size.
    set_block(worker, block, start, one_in(worker, 4) ? usable : size, alignment);
}

static size_t new_size(struct worker *worker, size_t old) {
    size_t change = 1 + below(worker, one_in(worker, 2) ? 4 * MB : 1 + old / 2);
    switch (below(worker, 4)) {
    case 0:
        return random_size(worker);
    case 1:
        return old > change ? old - change : old / 2 + 1;
    case 2:
        return old + 1 + below(worker, 100);
    default:
        return old + (old < 64 * KB ? change % (old + 1) : change);
    }
}

void resize(struct worker *worker, struct block *block) {
    size_t old = block->size, size = new_size(worker, old);
    if (size == 0 || size > 8 * GB)
        return;
    void *start;
    const char *call = "realloc";
    errno = 0;
    // rallocx copies all of a large block, so it is not called for gigabytes that were never written.
    if (is_jemalloc && old < 16 * MB && one_in(worker, 8)) {
        call = "rallocx";
        CALL(start = rallocx(block->start, size, 0));
        errno = start == NULL ? ENOMEM : errno;
    } else if (one_in(worker, 8)) {
        call = "reallocarray";
        CALL(start = reallocarray(block->start, size, 1));
    } else if (is_jemalloc && one_in(worker, 8)) {
        CALL(xallocx(block->start, size, 0, 0));
        check_block(block, old < size ? old : size, "after xallocx");
        if (size >= old)
            return;
        start = block->start;
    } else {
        CALL(start = realloc(block->start, size));
    }
    if (has_failed(start, size, call)) {
        check_block(block, old, "after a failed realloc");
        return;
    }
    block->start = start;
    check_block(block, old < size ? old : size, call);
    size_t usable;
    CALL(usable = malloc_usable_size(start));
    MUST(usable >= size, "%s(%zu) has %zu usable bytes", call, size, usable);
    MUST((uintptr_t)start % (size < 16 ? 8 : 16) == 0, "%s(%zu) is %p", call, size, start);
    clear_block(block);
    bool hidden = block->hidden;
    set_block(worker, block, start, size, 1);
    block->hidden = hidden;
}

void release(struct worker *worker, struct block *block) {
    void *start = block->start;
    size_t size = block->size;
    check_block(block, size, "before free");
    clear_block(block);
    errno = EXDEV;
    switch (below(worker, 16)) {
    case 0:
        CALL(start = realloc(start, 0));
        MUST(start == NULL, "realloc(block, 0) is %p", start);
        break;
    case 1:
        if (cfree != NULL) {
            CALL(cfree(start));
            break;
        } // fallthrough
    case 2:
        if (free_sized != NULL) {
            CALL(free_sized(start, size));
            break;
        } // fallthrough
    case 3:
        if (free_aligned_sized != NULL) {
            CALL(free_aligned_sized(start, block->alignment, size));
            break;
        } // fallthrough
    case 4:
        if (is_jemalloc) {
            size_t usable;
            CALL(usable = sallocx(start, 0));
            MUST(usable >= size, "sallocx of %zu: %zu", size, usable);
            CALL(dallocx(start, 0));
            break;
        } // fallthrough
    default:
        CALL(free(start));
    }
    MUST(errno == EXDEV, "free of %zu bytes changed errno to %d", size, errno);
}

// Calls the functions that return or print statistics. Other tests check the numbers.
void read_statistics(struct worker *worker) {
    char json[4096];
    switch (below(worker, 8)) {
    case 0:
        CALL((void)mallinfo2());
        break;
    case 1: {
        FILE *nowhere = fopen("/dev/null", "w");
        if (nowhere != NULL) {
            CALL(malloc_info(0, nowhere));
            fclose(nowhere);
        }
        break;
    }
    case 2:
        if (flarena_stats_json != NULL)
            CALL(flarena_stats_json(json, sizeof json));
        break;
    case 3:
        if (flarena_mark != NULL)
            CALL(flarena_mark("stress", NULL, worker->done));
        break;
    case 4:
        if (enabled[TRIM] && flarena_trim != NULL)
            CALL(flarena_trim());
        break;
    case 5:
        if (enabled[TRIM])
            CALL(malloc_trim(below(worker, 2) * MB));
        break;
    default: {
        char *copy;
        CALL(copy = strdup(replay));
        MUST(copy != NULL || failures_expected, "strdup");
        MUST(copy == NULL || strcmp(copy, replay) == 0, "strdup: %s", copy);
        CALL(free(copy));
    }
    }
}
