// with all mappings that the kernel allows in use, large blocks give NULL at worst, and no byte is lost
#include "check.h"
#include <sys/mman.h>

static long mappings_allowed(void) {
    long number = 65530;
    FILE *limit = fopen("/proc/sys/vm/max_map_count", "re");
    if (limit != NULL) {
        if (fscanf(limit, "%ld", &number) != 1)
            number = 65530;
        fclose(limit);
    }
    return number;
}

// Blocks are obtained, resized and freed while nothing can be split or mapped.
static void churn(void) {
    static struct {
        unsigned char *start;
        size_t size;
    } blocks[12];
    unsigned state = 1;
    for (int i = 0; i < 150; i++) {
        state = state * 1664525 + 1013904223;
        size_t slot = (state >> 8) % COUNT(blocks), size = 1 * MB + (state >> 10) % (7 * MB);
        unsigned seed = (unsigned)slot;
        if (blocks[slot].start != NULL) {
            size_t kept = blocks[slot].size < size ? blocks[slot].size : size;
            unsigned char *moved = i % 3 == 0 ? realloc(blocks[slot].start, size) : NULL;
            if (moved != NULL) {
                CHECK(pages_hold(moved, kept, seed), "realloc lost bytes in round %d", i);
                blocks[slot].start = moved;
                blocks[slot].size = size;
                stamp_pages(moved, size, seed);
                continue;
            }
            CHECK(pages_hold(blocks[slot].start, blocks[slot].size, seed), "bytes were lost in round %d", i);
            free(blocks[slot].start);
            blocks[slot].start = NULL;
        } else {
            blocks[slot].start = i % 2 ? malloc(size) : calloc(1, size);
            blocks[slot].size = size;
            if (blocks[slot].start == NULL)
                CHECK(errno == ENOMEM, "errno %d", errno);
            else
                stamp_pages(blocks[slot].start, size, seed);
        }
    }
    for (size_t slot = 0; slot < COUNT(blocks); slot++) {
        free(blocks[slot].start);
        blocks[slot].start = NULL;
    }
}

int main(void) {
    long allowed = mappings_allowed();
    if (allowed > 300000)
        SKIP("this machine allows too many mappings to use them up");
    churn();
    size_t length = (size_t)(allowed + 1000) * 2 * 4096;
    char *region = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(region != MAP_FAILED, "mmap: %s", strerror(errno));
    size_t at = 0;
    while (at < length && mprotect(region + at, 4096, PROT_READ) == 0)
        at += 8192;
    CHECK(at < length && errno == ENOMEM, "%zu mappings were made without a refusal", at / 4096);
    churn();
    munmap(region, 8192 * 8); // a few mappings to spare
    churn();
    munmap(region, length);
    churn();
    malloc_trim(0);
    CHECK(rss_bytes() < (long)(48 * MB), "%ld bytes resident after all was freed", rss_bytes());
}
