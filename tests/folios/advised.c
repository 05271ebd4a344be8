// a program's advice on huge pages does not reach the next block, and advice that is already in force splits no mapping
#include "folios.h"

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

int main(void) {
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
