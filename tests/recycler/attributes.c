// Attributes that a program leaves on the pages of its block.
#include "seccomp_filter.h"
#include "tests.h"
#include "vma_attributes.h"

// Three blocks of one size, allocated one after the other: an attribute of the second must not reach the others.
static char *three[3];

static void malloc_three(size_t size) {
    for (unsigned i = 0; i < 3; i++) {
        three[i] = malloc(size);
        stamp_pages(three[i], size, i);
    }
}

static void free_neighbours(size_t size, int kind) {
    CHECK(pages_match(three[0], size, 0), "%s: the block before changed", KIND_NAMES[kind]);
    CHECK(pages_match(three[2], size, 2), "%s: the block after changed", KIND_NAMES[kind]);
    free(three[0]);
    free(three[2]);
}

// Sets an attribute on a part of a block, resizes and frees the block, and then checks blocks in its memory.
static void free_with_attribute(size_t size, size_t to, int kind, int place) {
    malloc_three(size);
    char *start, *block = three[1];
    size_t length, kept = size < to ? size : to;
    select_part(block, size, place, &start, &length);
    int refused = set_attribute(start, length, kind) != 0; // some kernels lack some of them
    if (to != size) {
        block = realloc(block, to);
        CHECK(block != NULL, "realloc to %zu", to);
        if (kind != NO_ACCESS)
            CHECK(pages_match(block, kept, 1), "%s: realloc from %zu to %zu lost bytes", KIND_NAMES[kind], size, to);
    }
    if (!refused && to > size)
        check_next_user(size, kind, place);
    free(block);
    if (!refused)
        check_next_user(size, kind, place);
    if (!refused && to != size)
        check_next_user(to, kind, place);
    free_neighbours(size, kind);
}

static void check_nothing_locked(void) {
    malloc_trim(0);
    CHECK(proc_number("status", "VmLck") <= 0, "%ld bytes are locked after all blocks were freed", proc_number("status", "VmLck"));
}

TEST("the attributes that a program sets with madvise, mlock, mprotect or mbind do not affect the next block there") {
    const size_t sizes[] = {1 * MB + 100, 3 * MB / 2, 2 * MB, 3 * MB, 4 * MB, 9 * MB + 5000, 40 * MB};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int place = 0; place < PLACES; place++)
                free_with_attribute(sizes[s], sizes[s], kind, place);
    check_nothing_locked();
}

TEST("attributes of a block do not stay on the memory that realloc moves it away from or cuts off") {
    const size_t sizes[] = {3 * MB / 2, 4 * MB, 9 * MB + 5000};
    const int places[] = {WHOLE, SECOND_HALF, FIRST_PAGE, LAST_PAGE};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < KINDS; kind++)
            // MADV_NOHUGEPAGE may stay on whole units: the library does not detect it there, and it is harmless.
            for (size_t p = kind == NO_HUGE_PAGE ? COUNT(places) : 0; p < COUNT(places); p++) {
                free_with_attribute(sizes[s], sizes[s] * 3 / 4, kind, places[p]);
                free_with_attribute(sizes[s], sizes[s] / 2 + MB / 2, kind, places[p]);
                // A copy of an unreadable block would crash, so such a block is not grown.
                if (kind != NO_ACCESS)
                    free_with_attribute(sizes[s], sizes[s] * 3, kind, places[p]);
            }
    check_nothing_locked();
}

#define BLOCKS 16

static int by_address(const void *a, const void *b) {
    return *(char *const *)a < *(char *const *)b ? -1 : 1;
}

// Both blocks fill their units, and the mapping begins and ends with them, so that no VMA boundary lies inside a block.
static void protect_and_reuse(size_t size, int round) {
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc_touched(size, 1);
    qsort(blocks, BLOCKS, sizeof *blocks, by_address);
    int pair = 0;
    while (pair < BLOCKS - 1 && blocks[pair] + size != blocks[pair + 1])
        pair++;
    CHECK(pair < BLOCKS - 1, "no two of the blocks are neighbours");
    CHECK(mprotect(blocks[pair], 2 * size, PROT_READ) == 0, "mprotect: %s", strerror(errno));
    long long reset = statistic("recycler", "attributes_reset"), unmapped = statistic("recycler", "attributes_altered");
    int right_first = round % 2;
    free(blocks[pair + right_first]);
    free(blocks[pair + !right_first]);
    reset = statistic("recycler", "attributes_reset") - reset;
    unmapped = statistic("recycler", "attributes_altered") - unmapped;
    CHECK(reset + unmapped >= 2, "%lld blocks reset, %lld unmapped", reset, unmapped);
    blocks[pair] = malloc_touched(size, 2); // crashes if the pages are still protected
    blocks[pair + 1] = malloc_touched(size, 2);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

TEST("an attribute whose mapping covers two neighbouring blocks exactly is detected at free") {
    // qemu's user mode has too few addresses for the library's address window
    for (int round = 0; round < 10; round++) {
        protect_and_reuse(4 * MB, round);
        protect_and_reuse(2 * MB, round);
        protect_and_reuse(8 * MB, round);
    }
}

static void refuse(unsigned advice) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install_hidden_filter(filter, COUNT(filter));
}

static char *malloc_stamped(size_t size) {
    char *block = malloc(size);
    CHECK((uintptr_t)block % (2 * MB) == 0, "%p is not from the recycler", block);
    stamp_pages(block, size, 1);
    return block;
}

static char *malloc_advised(size_t size, int advice) {
    char *block = malloc_stamped(size);
    if (madvise(block, size, advice) != 0)
        SKIP("this kernel lacks this advice");
    return block;
}

static void check_in_child(char *block, size_t size) {
    IN_CHILD CHECK(pages_match(block, size, 1));
}

TEST("MADV_DONTFORK that the system refuses to reset does not reach the next block") {
    refuse(MADV_DOFORK);
    for (int round = 0; round < 4; round++) {
        free(malloc_advised(8 * MB, MADV_DONTFORK));
        check_in_child(malloc_stamped(8 * MB), 8 * MB);
    }
}

TEST("attributes that the system refuses to reset reach neither the rest of a shrunk block nor the next block") {
    refuse(MADV_KEEPONFORK);
    for (int round = 0; round < 4; round++) {
        check_in_child(realloc(malloc_advised(8 * MB, MADV_DONTDUMP), 4 * MB), 4 * MB);
        check_in_child(malloc_stamped(4 * MB), 4 * MB);
    }
}

TEST("where the system provides huge pages on request, no block gets MADV_HUGEPAGE, fresh or recycled") {
    // qemu's user mode ignores advice on huge pages
    if (!huge_pages_are_on_request())
        SKIP("this system does not leave huge pages to the program");
    const size_t sizes[] = {2 * MB, 4 * MB, 6 * MB, 8 * MB, 16 * MB, 5 * MB + 1};
    for (int round = 0; round < 4; round++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            char *blocks[4];
            for (size_t i = 0; i < COUNT(blocks); i++) {
                blocks[i] = malloc_touched(sizes[s], 1);
                CHECK(vma_flag(blocks[i], sizes[s], " hg") == 0, "block %zu of %zu bytes, round %d", i, sizes[s], round);
            }
            // Another attribute must not lead to a request for huge pages.
            madvise(blocks[1] + MB, PAGE, MADV_DONTFORK);
            for (size_t i = 0; i < COUNT(blocks); i++)
                free(blocks[i]);
        }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
    CHECK(statistic("recycler", "asks_for_huge_pages") == 0);
    // The test sees the flag when a program sets it.
    char *block = malloc_touched(64 * MB, 1);
    CHECK(madvise(block, 64 * MB, MADV_HUGEPAGE) == 0 && vma_flag(block, 64 * MB, " hg") == 1);
}

// NumPy gives this advice to each new array of 4 MB, from the second page on.
TEST("a fresh block with advice for huge pages behind its first page is cached when it is freed") {
    if (!huge_pages_are_on_request())
        SKIP("this system does not leave huge pages to the program");
    const size_t sizes[] = {5 * MB, 8 * MB, 100 * MB};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        char *block = malloc(sizes[s]);
        CHECK(madvise(block + PAGE, sizes[s] - PAGE, MADV_HUGEPAGE) == 0);
        touch(block, sizes[s], 1);
        free(block);
        CHECK(statistic("recycler", "cached_bytes") >= (long long)sizes[s], "%zu bytes", sizes[s]);
        malloc_trim(0);
    }
}

TEST("after mlockall(MCL_FUTURE) every block is locked, fresh or recycled") {
    const size_t sizes[] = {3 * MB / 2, 2 * MB, 4 * MB, 6 * MB, 9 * MB + 5000};
    char *blocks[4];
    if (mlockall(MCL_FUTURE) != 0 || malloc(32 * MB) == NULL)
        SKIP("this user may not lock memory");
    for (int round = 0; round < 3; round++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            for (size_t i = 0; i < COUNT(blocks); i++)
                blocks[i] = malloc_touched(sizes[s], (char)i);
            blocks[0] = realloc(blocks[0], sizes[s] * 2);
            for (size_t i = 0; i < COUNT(blocks); i++)
                CHECK(vma_flag(blocks[i], sizes[s], " lo") == 1, "block %zu of %zu bytes, round %d", i, sizes[s], round);
            free(blocks[1]);
            free(blocks[3]);
            blocks[1] = malloc_touched(sizes[s] * 2 + 1, 5); // gathered from the pages of these two
            CHECK(vma_flag(blocks[1], sizes[s] * 2 + 1, " lo") == 1, "twice %zu bytes, round %d", sizes[s], round);
            for (size_t i = 0; i < 3; i++)
                free(blocks[i]);
        }
    CHECK(statistic("recycler", "fresh_bytes_total") > 0, "no block came from the recycler");
    char *unlocked = malloc_touched(4 * MB, 1);
    munlock(unlocked, 4 * MB);
    free(unlocked);
    CHECK(vma_flag(malloc_touched(4 * MB, 2), 4 * MB, " lo") == 1, "a block in memory that the program had unlocked");
}

#define PIECES 40
#define PIECE (4 * MB)
#define GATHERED (PIECES / 2 * PIECE)

// A block whose pages were moved together. The governor may purge the pieces before that: then try again.
static char *malloc_gathered(void) {
    for (int attempt = 0;; attempt++) {
        char *pieces[PIECES];
        for (int i = 0; i < PIECES; i++)
            pieces[i] = malloc_touched(PIECE, 1);
        long long moved = statistic("recycler", "moved_bytes_total");
        for (int i = 0; i < PIECES; i += 2) // no two neighbours
            free(pieces[i]);
        char *block = malloc_touched(GATHERED, 2);
        moved = statistic("recycler", "moved_bytes_total") - moved;
        for (int i = 1; i < PIECES; i += 2)
            free(pieces[i]);
        if (moved >= (long long)GATHERED / 2)
            return block;
        CHECK(attempt < 20, "the block was not gathered: %lld bytes moved", moved);
        free(block);
    }
}

// A part of the block that is exactly one mapping. Sets *start and returns its length.
static size_t inner_mapping(const char *block, char **start) {
    char line[512];
    size_t length = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL, "cannot open /proc/self/maps");
    while (length == 0 && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from = 0, to = 0;
        sscanf(line, "%lx-%lx ", &from, &to);
        int is_inside = from > (uintptr_t)block && to < (uintptr_t)block + GATHERED;
        if (is_inside && from % (2 * MB) == 0 && to % (2 * MB) == 0 && to - from <= PIECE) {
            *start = (char *)from;
            length = to - from;
        }
    }
    fclose(maps);
    CHECK(length > 0, "no mapping lies inside the block at %p", (void *)block);
    return length;
}

// The governor may purge the memory between free and malloc: then try again.
static void reuse_gathered(int kind) {
    for (int round = 0, reused = 0; !reused; round++) {
        char *start, *block = malloc_gathered();
        size_t length = inner_mapping(block, &start);
        long locked = proc_number("status", "VmLck");
        if (set_attribute(start, length, kind) != 0) {
            CHECK(round == 0 && kind == LOCK, "%s: %s", KIND_NAMES[kind], strerror(errno));
            SKIP("this user may not lock memory");
        }
        CHECK((proc_number("status", "VmLck") > locked) == (kind == LOCK), "%ld bytes locked", proc_number("status", "VmLck"));
        free(block);
        CHECK(proc_number("status", "VmLck") == locked, "%ld bytes locked after the free", proc_number("status", "VmLck"));
        char *next = malloc(GATHERED);
        stamp_pages(next, GATHERED, 3);
        CHECK(vma_flag(next, GATHERED, SMAPS_FLAGS[kind]) == 0, "%s is set on the next block", KIND_NAMES[kind]);
        IN_CHILD CHECK(pages_match(next, GATHERED, 3));
        reused = next <= start && start + length <= next + GATHERED;
        CHECK(reused || round < 20, "no later block reused this memory");
        free(next);
    }
}

TEST("memory inside a gathered block that a program locked is unlocked when the block is freed") {
    reuse_gathered(LOCK);
}

TEST("a forked child can read all of a gathered block whose memory had MADV_DONTFORK before") {
    reuse_gathered(DONT_FORK);
}
