// Large blocks where the system provides pages of 64 KiB on request.
#include "recycler/vma_attributes.h"
#include "tests.h"

static long minor_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

// The number of pages of the range that are in memory, by /proc/self/pagemap.
static size_t present_pages(const char *start, size_t bytes) {
    size_t present = 0;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    CHECK(pagemap >= 0, "cannot open /proc/self/pagemap");
    for (size_t page = 0; page < bytes / 4096; page++) {
        uint64_t entry = 0;
        off_t at = (off_t)(((uintptr_t)start / 4096 + page) * sizeof entry);
        CHECK(pread(pagemap, &entry, sizeof entry, at) == (ssize_t)sizeof entry);
        present += (size_t)(entry >> 63);
    }
    close(pagemap);
    return present;
}

TEST("where the system provides pages of 64 KiB on request, every large block requests them") {
    const size_t sizes[] = {MB + 33, 2 * MB, 3 * MB - 5, 8 * MB, 8 * MB + 1, 33 * MB};
    long before = minor_faults();
    for (int round = 0; round < 3; round++) {
        char *blocks[COUNT(sizes)][3];
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = 0; i < 3; i++) {
                blocks[s][i] = i == 1 ? (char *)calloc(1, sizes[s]) : (char *)malloc(sizes[s]);
                stamp_pages(blocks[s][i], sizes[s], (unsigned)i);
                CHECK(vma_flag(blocks[s][i], sizes[s], " hg") == 1, "block %d of %zu bytes, round %d", i, sizes[s], round);
            }
        char *grown = (char *)realloc(blocks[3][0], 50 * MB);
        stamp_pages(grown + 8 * MB, 42 * MB, 9);
        CHECK(vma_flag(grown, 50 * MB, " hg") == 1 && pages_match(grown, 8 * MB, 0));
        free(grown);
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = s == 3; i < 3; i++)
                free(blocks[s][i]);
        char *gathered = malloc_touched(120 * MB, 1);
        CHECK(vma_flag(gathered, 120 * MB, " hg") == 1);
        free(gathered);
    }
    CHECK(statistic("recycler", "moved_bytes_total") > 0, "no page was moved");
    CHECK(statistic("recycler", "asks_for_huge_pages") == 1);
    // Pages of 4 KiB would cost one fault for each page.
    long pages = (long)(statistic("recycler", "fresh_bytes_total") / 4096);
    CHECK(minor_faults() - before < pages / 2, "%ld faults for %ld pages", minor_faults() - before, pages);
}

// Block sizes with and without an untouched page behind the block.
static const size_t SIZES_ADVISED[] = {9 * MB + 5, 4 * MB};

static void advise_and_free(size_t size, int place) {
    char *block = malloc_touched(size, 1), *start;
    size_t length;
    select_part(block, size, place, &start, &length);
    CHECK(madvise(start, length, MADV_HUGEPAGE) == 0);
    CHECK(count_mappings(block, size) == 1, "%d mappings", count_mappings(block, size));
    CHECK(madvise(start, length, MADV_NOHUGEPAGE) == 0);
    CHECK(vma_flag(block, size, " nh") != 0);
    free(block);
}

TEST("advice on huge pages does not reach the next block, and advice that is in force splits no mapping") {
    for (size_t s = 0; s < COUNT(SIZES_ADVISED); s++)
        for (int place = WHOLE; place < PLACES; place++) {
            advise_and_free(SIZES_ADVISED[s], place);
            for (size_t size = 2 * MB; size <= 10 * MB; size += 2 * MB) {
                char *next = malloc_touched(size, 2);
                CHECK(vma_flag(next, size, " nh") == 0 && vma_flag(next, size, " hg") == 1, "%zu bytes, place %d", size,
                      place);
                free(next);
            }
        }
    long long unmapped = statistic("fallbacks", "attributes_altered");
    CHECK(unmapped == 0, "%lld blocks were unmapped instead", unmapped);
    CHECK(statistic("recycler", "recycled_bytes_total") > (long)(50 * MB), "no page was recycled");
}

TEST("after a fork parent and child keep their bytes, and blocks of the child request pages of 64 KiB too") {
    char *blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = (char *)malloc(5 * MB);
        stamp_pages(blocks[i], 5 * MB, (unsigned)i);
    }
    free(blocks[7]);
    pid_t child = fork();
    CHECK(child >= 0);
    for (int i = 0; i < 7; i++) {
        // Parent and child each write to one page of every 64 KiB, so that the kernel copies single pages.
        for (size_t at = (child == 0) * 4096; at < 5 * MB; at += 64 * KB)
            blocks[i][at] = pattern(at, (unsigned)i);
        CHECK(pages_match(blocks[i], 5 * MB, (unsigned)i), "block %d", i);
        if (i % 2 == 0)
            free(blocks[i]);
    }
    char *joined = (char *)malloc(18 * MB);
    stamp_pages(joined, 18 * MB, 3);
    CHECK(vma_flag(joined, 18 * MB, " hg") == 1 && pages_match(joined, 18 * MB, 3));
    for (int i = 1; i < 7; i += 2)
        CHECK(pages_match(blocks[i], 5 * MB, (unsigned)i), "block %d", i);
    if (child == 0)
        _exit(0);
    CHECK_CHILD(child);
}

TEST("the slack of a block is purged to the page, even where that splits a page of 64 KiB") {
    // Slack that is purged before the block is touched comes back with the fault on the last 64 KiB.
    restart_with("FLARENA_DECAY_MS", "5000");
    enum { BLOCKS = 40 };
    const size_t size = 2 * MB + 5 * 4096 + 1; // six pages of the last unit
    char *blocks[BLOCKS], *fresh[BLOCKS];
    allocate_and_free(BLOCKS, 4 * MB);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = (char *)malloc(size);
        stamp_pages(blocks[i], size, (unsigned)i);
    }
    for (int i = 0; i < BLOCKS; i++) {
        fresh[i] = (char *)malloc(size);
        stamp_pages(fresh[i], size, (unsigned)(i + BLOCKS));
    }
    char *shrunk = (char *)malloc(64 * MB);
    stamp_pages(shrunk, 64 * MB, 7);
    CHECK(realloc(shrunk, 31 * MB + 4096) == shrunk);
    await_governor();
    await_empty_cache();
    AWAIT(20, statistic("recycler", "slack_bytes") == 0, "%lld bytes of slack", statistic("recycler", "slack_bytes"));
    int purged_early = 0;
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(present_pages(blocks[i], 4 * MB) == 512 + 6, "%zu pages of block %d", present_pages(blocks[i], 4 * MB), i);
        // On a busy machine the process may look idle. Slack that is purged before the first touch comes back with it.
        size_t present = present_pages(fresh[i], 4 * MB);
        purged_early += present == 512 + 16;
        CHECK(present == 512 + 6 || (present == 512 + 16 && purged_early <= 2), "%zu pages of fresh block %d", present, i);
        CHECK(pages_match(blocks[i], size, (unsigned)i) && pages_match(fresh[i], size, (unsigned)(i + BLOCKS)));
    }
    CHECK(present_pages(shrunk, 64 * MB) == 31 * 256 + 1, "%zu pages", present_pages(shrunk, 64 * MB));
    CHECK(pages_match(shrunk, 31 * MB + 4096, 7));
    // Purged pages read as zero when they are faulted in again.
    char *cleared = (char *)calloc(1, 64 * MB);
    CHECK(first_nonzero(cleared, 64 * MB) == 64 * MB);
}
