// a large allocation that cannot fit below the limit of the control group fails with ENOMEM, with FLARENA_AT_LIMIT=fail
//
// With an argument: blocks of so many megabytes until one is refused, in status 3.
#include "check.h"

enum { LIMIT_MB = 256, BLOCK_MB = 24, REFUSED = 3 };

static void fill_group(size_t megabytes) {
    for (;;) {
        char *block = (char *)malloc(megabytes * MB);
        if (block == NULL)
            exit(errno == ENOMEM ? REFUSED : 1);
        touch(block, megabytes * MB, 1);
    }
}

int main(int argc, char **argv) {
    if (argc > 1)
        fill_group(strtoul(argv[1], NULL, 10));
    char *grown = malloc_touched(BLOCK_MB * MB, 7);
    void **small = small_heap(LIMIT_MB / 4 * MB);
    char *held[LIMIT_MB / BLOCK_MB];
    size_t count = 0;
    while ((held[count] = (char *)malloc(BLOCK_MB * MB)) != NULL)
        touch(held[count++], BLOCK_MB * MB, 1);
    CHECK(errno == ENOMEM && count >= 4, "%zu blocks, %s", count, strerror(errno));
    void *block = NULL;
    CHECK(posix_memalign(&block, 4096, BLOCK_MB * MB) == ENOMEM && block == NULL);
    errno = 0;
    CHECK(realloc(grown, 3 * BLOCK_MB * MB) == NULL && errno == ENOMEM);
    CHECK(grown[0] == 7 && grown[BLOCK_MB * MB - 1] == 7, "the old block stays");
    // Its pages stay untouched.
    CHECK(calloc(1, LIMIT_MB * MB) != NULL, "calloc is never refused");
    // Of the small heap, pages are free but not yet returned.
    free_most(small);
    CHECK((block = malloc(BLOCK_MB * MB)) != NULL, "a release makes room: %s", strerror(errno));
    touch(block, BLOCK_MB * MB, 1);
    free(held[--count]);
    CHECK((held[count] = (char *)malloc(BLOCK_MB * MB)) != NULL, "freed blocks make room: %s", strerror(errno));
    touch(held[count], BLOCK_MB * MB, 1);
}
