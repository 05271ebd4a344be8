// Large blocks: their pages, and the pages that the cache keeps of them.
#include "tests.h"

TEST("the recycler serves large blocks with alignments of up to 2 MiB, and the backend those with larger ones") {
    for (size_t align = 16; align <= 64 * MB; align *= 2) {
        void *block = NULL;
        long long served = statistic("recycler", "live_blocks");
        CHECK(posix_memalign(&block, align, 5 * MB) == 0);
        CHECK(((size_t)block & (align - 1)) == 0 && malloc_usable_size(block) >= 5 * MB);
        CHECK((statistic("recycler", "live_blocks") == served + 1) == (align <= 2 * MB), "alignment %zu", align);
        free(block);
    }
}

TEST("a block a little larger than 1 MiB costs only its pages, not 2 MiB") {
    char *blocks[100];
    long before = rss_bytes();
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc_touched(MB + MB / 10, 1);
    CHECK(statistic("recycler", "live_blocks") == 100);
    CHECK(rss_bytes() < before + (long)(118 * MB));
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}

TEST("a large block is gathered from the pages of freed smaller ones, so that the peak does not grow") {
    restart_with_slow_decay();
    char *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc_touched(4 * MB, 1);
    long peak = proc_number("status", "VmHWM");
    for (int i = 0; i < 100; i += 2)
        free(blocks[i]);
    char *large = malloc_touched(200 * MB, 2);
    CHECK(proc_number("status", "VmHWM") <= peak + (long)(34 * MB));
    CHECK(statistic("recycler", "moved_bytes_total") >= (long)(150 * MB));
    for (int i = 1; i < 100; i += 2)
        CHECK(blocks[i][4 * MB - 1] == 1 && blocks[i][0] == 1);
    free(large);
}

TEST("realloc of a large block moves its pages: the peak holds no second copy, and the contents stay") {
    // qemu's user mode keeps resident tables of all pages
    size_t size = 4 * MB;
    char *other = malloc_touched(3 * MB, 9);
    char *block = malloc_touched(size, 1);
    while (size < 400 * MB) {
        size_t next = size + size / 8 + 12345;
        block = realloc(block, next);
        CHECK(block != NULL && block[0] == 1 && block[size - 1] == 1);
        touch(block, next, 1);
        size = next;
    }
    CHECK(proc_number("status", "VmHWM") < (long)(size + 60 * MB));
    CHECK(statistic("recycler", "live_blocks") == 2 && statistic("recycler", "realloc_copied") == 0);
    for (size_t at = 0; at < size; at += 4096)
        CHECK(block[at] == 1);
    block = realloc(block, 5 * MB);
    CHECK(block[0] == 1 && block[5 * MB - 4096] == 1);
    CHECK(statistic("recycler", "live_bytes") < (long)(9 * MB));
    CHECK(other[3 * MB - 1] == 9);
    free(other);
    free(block);
}

TEST("calloc clears recycled pages, and does not fault in pages that were never touched") {
    restart_with_slow_decay();
    long long recycled = statistic("recycler", "recycled_bytes_total");
    free(malloc_touched(64 * MB, 7));
    char *clean = calloc(1, 64 * MB);
    CHECK(clean != NULL);
    for (size_t at = 0; at < 64 * MB; at += 512)
        CHECK(clean[at] == 0);
    CHECK(statistic("recycler", "recycled_bytes_total") >= recycled + (long)(64 * MB), "the block is not recycled");
    free(clean);
    malloc_trim(0);

    char *sparse = malloc(256 * MB);
    sparse[0] = 1;
    free(sparse);
    long resident = rss_bytes();
    char *again = calloc(1, 256 * MB);
    CHECK(again[0] == 0 && again[255 * MB] == 0);
    CHECK(rss_bytes() < resident + (long)(16 * MB));
    free(again);
}

TEST("an idle process purges its cached pages without a call") {
    long cached = 0;
    // The pages are cached first. Otherwise nothing would be left to purge. Where the thread waits for a processor, they
    // may be purged before they are counted.
    for (int round = 0; round < 20 || (round < 40 && cached < (long)(90 * MB)); round++) {
        free(malloc_touched(100 * MB, 1));
        cached = rss_bytes();
    }
    CHECK(cached > (long)(90 * MB), "%ld bytes resident", cached);
    await_rss_below(24 * MB, 30);
    await_empty_cache();
    CHECK(statistic("recycler", "returned_bytes_total") >= (long)(100 * MB));
}

static void churn(size_t bytes) {
    for (int round = 0; round < 20; round++)
        allocate_and_free(10, bytes);
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}

TEST("a process that never held 64 MB of large blocks purges its cached pages too") {
    // qemu's user mode adds its own memory to the resident size
    churn(2 * MB); // 20 MB: without a governor the cache stays small
    await_rss_below(20 * MB, 30);
    churn(5 * MB); // 50 MB: the governor purges the cache when it is old
    await_rss_below(12 * MB, 30);
    await_empty_cache();
}

#define BYTES (3 * MB)

static int cpus[2];

// Frees each block on its own processor. Then allocates on the processor of the first, which must reuse the first.
static void check_reuse(void *blocks[2], int first) {
    for (int index = 0; index < 2; index++) {
        run_on_cpu(cpus[first ^ index]);
        free(blocks[first ^ index]);
    }
    run_on_cpu(cpus[first]);
    void *same = malloc_touched(BYTES, 1);
    CHECK(same == blocks[first], "%p of %p and %p", same, blocks[0], blocks[1]);
    CHECK(malloc_touched(BYTES, 1) == blocks[first ^ 1], "the other block is not reused");
}

TEST("a thread gets the pages that were freed on its own processor before those freed on another") {
    restart_with_slow_decay();
    const unsigned *rseq_size = (const unsigned *)dlsym(RTLD_DEFAULT, "__rseq_size");
    if (rseq_size == NULL || *rseq_size == 0)
        SKIP("this libc does not register rseq, which names a thread's processor");
    cpu_set_t all;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "%s", strerror(errno));
    int found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &all))
            cpus[found++] = cpu;
    if (found < 2)
        SKIP("this process may use one processor only");
    void *held[5]; // the two blocks lie between blocks that stay
    for (int index = 0; index < 5; index++)
        held[index] = malloc_touched(BYTES, 1);
    void *blocks[2] = {held[1], held[3]};
    for (int round = 0; round < 10; round++)
        check_reuse(blocks, round % 2);
}
