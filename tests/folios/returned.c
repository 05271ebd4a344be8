// the slack of a block is purged to the page, even where that splits a page of 64 KiB
#include "folios.h"

int main(void) {
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
    await_empty_cache(20);
    for (int tenth = 0; tenth < 200 && statistic("recycler", "slack_bytes") > 0; tenth++)
        sleep_ms(100);
    CHECK(statistic("recycler", "slack_bytes") == 0, "%lld bytes of slack", statistic("recycler", "slack_bytes"));
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
