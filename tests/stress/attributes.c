// Changes attributes of pages inside a block: advice, locks, protection, mappings. The recycler must reset them before it
// reuses the memory. A backend's heap keeps them, so for other blocks the program resets them itself.
#include "stress.h"

struct pages {
    char *start;
    size_t length;
};

// Some whole pages of the block; length 0 if it has none.
static struct pages some_pages(struct worker *worker, const struct block *block) {
    uintptr_t first = ((uintptr_t)block->start + 4095) & ~(uintptr_t)4095;
    uintptr_t end = ((uintptr_t)block->start + block->size) & ~(uintptr_t)4095;
    if (end <= first)
        return (struct pages){NULL, 0};
    size_t count = (end - first) / 4096, skipped = one_in(worker, 3) ? 0 : below(worker, count);
    size_t length = one_in(worker, 2) ? count - skipped : 1 + below(worker, count - skipped);
    return (struct pages){(char *)first + skipped * 4096, length * 4096};
}

static void advise(struct worker *worker, struct block *block, struct pages part) {
    static const int harmless[] = {MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_MERGEABLE, MADV_UNMERGEABLE,
                                   MADV_SEQUENTIAL, MADV_NORMAL, MADV_WILLNEED, 20 /* MADV_COLD */, 21 /* MADV_PAGEOUT */, 25 /* MADV_COLLAPSE */};
    static const int emptying[] = {MADV_DONTNEED, 8 /* MADV_FREE */};
    if (one_in(worker, 2)) {
        madvise(part.start, part.length, emptying[below(worker, 2)]);
        fill_block(worker, block);
    } else if (block->size < 64 * MB) // in larger blocks the kernel would fill sparse ranges with huge pages
        madvise(part.start, part.length, harmless[below(worker, COUNT(harmless))]);
}

static void hide(struct worker *worker, struct block *block, struct pages part) {
    // Other pages may still be hidden: from a time when the block was larger, and came from the recycler.
    bool was_hidden = block->hidden;
    madvise(part.start, part.length, one_in(worker, 2) ? MADV_DONTFORK : 18 /* MADV_WIPEONFORK */);
    block->hidden = true;
    if (is_from_recycler(block))
        return;
    if (madvise(part.start, part.length, MADV_DOFORK) == 0 && madvise(part.start, part.length, 19 /* MADV_KEEPONFORK */) == 0)
        block->hidden = was_hidden;
}

static void lock_pages(struct worker *worker, struct block *block, struct pages part) {
    size_t length = part.length < 256 * KB ? part.length : 256 * KB;
    mlock(part.start, length);
    check_block(block, block->size, "locked");
    if (!is_from_recycler(block) || one_in(worker, 2))
        munlock(part.start, length);
}

static void protect(struct worker *worker, struct block *block, struct pages part) {
    if (mprotect(part.start, part.length, PROT_READ) != 0)
        return;
    if (is_from_recycler(block) && one_in(worker, 2)) {
        release(worker, block);
        return;
    }
    while (mprotect(part.start, part.length, PROT_READ | PROT_WRITE) != 0)
        MUST(failures_expected, "mprotect: %s", strerror(errno));
}

// Maps a file over some pages. After the free no other block may write to the file.
static void map_file(struct worker *worker, struct block *block, struct pages part) {
    enum { LONGEST = 64 * 1024 };
    static _Thread_local unsigned char before[LONGEST], after[LONGEST];
    size_t length = part.length < LONGEST ? part.length : LONGEST;
    int file = memfd_create("stress", MFD_CLOEXEC);
    if (file < 0)
        return;
    if (ftruncate(file, (off_t)length) == 0 &&
        mmap(part.start, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == part.start) {
        size_t size = block->size;
        fill_block(worker, block);
        release(worker, block);
        MUST(pread(file, before, length, 0) == (ssize_t)length, "pread: %s", strerror(errno));
        void *others[3];
        for (size_t i = 0; i < COUNT(others); i++) {
            CALL(others[i] = malloc(size));
            if (others[i] != NULL)
                stamp_pages(others[i], size, (unsigned)i);
        }
        MUST(pread(file, after, length, 0) == (ssize_t)length, "pread: %s", strerror(errno));
        MUST(memcmp(before, after, length) == 0, "a new block of %zu writes to the file that was mapped over a freed one", size);
        for (size_t i = 0; i < COUNT(others); i++)
            CALL(free(others[i]));
    }
    close(file);
}

static void map_pages(struct worker *worker, struct block *block, struct pages part) {
    if (one_in(worker, 2) && block->size < 16 * MB) {
        map_file(worker, block, part);
        return;
    }
    size_t length = part.length < 1 * MB ? part.length : 1 * MB;
    void *fresh = mmap(part.start, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MUST(fresh == part.start || failures_expected, "mmap: %s", strerror(errno));
    // A failed mmap may have removed the old mapping. The block is then unusable, also without the library.
    if (fresh == part.start)
        fill_block(worker, block);
}

void change_attributes(struct worker *worker, struct block *block) {
    struct pages part = some_pages(worker, block);
    if (part.length == 0)
        return;
    static void (*const actions[])(struct worker *, struct block *, struct pages) = {
        [ADVISE] = advise, [HIDE] = hide, [LOCK] = lock_pages, [PROTECT] = protect, [MAP] = map_pages};
    enum class kind = ADVISE + below(worker, MAP - ADVISE + 1);
    if (!enabled[kind] || (kind == MAP && (!is_from_recycler(block) || failures_expected)))
        return;
    // While calls fail, a reset may fail, and a backend's heap would keep the attribute.
    if (kind != ADVISE && !is_from_recycler(block) && failures_expected)
        return;
    // Some of these actions are cancellation points.
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    actions[kind](worker, block, part);
    pthread_setcancelstate(old, NULL);
}
