// The functions that allocate.
#include "tests.h"

TEST("malloc returns distinct blocks, aligned to 16 bytes, that keep their contents") {
    unsigned char *blocks[COUNT(SIZES)][3];
    for (size_t i = 0; i < COUNT(SIZES); i++)
        for (unsigned copy = 0; copy < 3; copy++) {
            unsigned char *block = malloc(SIZES[i]);
            CHECK(block != NULL, "malloc(%zu): %s", SIZES[i], strerror(errno));
            CHECK((uintptr_t)block % (SIZES[i] < 16 ? 8 : 16) == 0, "malloc(%zu) = %p", SIZES[i], (void *)block);
            fill(block, SIZES[i], (unsigned)i * 3 + copy);
            blocks[i][copy] = block;
        }
    for (size_t i = 0; i < COUNT(SIZES); i++)
        for (unsigned copy = 0; copy < 3; copy++) {
            size_t wrong = first_mismatch(blocks[i][copy], SIZES[i], (unsigned)i * 3 + copy);
            CHECK(wrong == SIZES[i], "byte %zu of a block of %zu changed", wrong, SIZES[i]);
            free(blocks[i][copy]);
        }
}

TEST("malloc(0), calloc(0, n) and calloc(n, 0) return distinct pointers that can be freed") {
    void *blocks[] = {malloc(0), malloc(0), calloc(0, 8), calloc(8, 0), realloc(NULL, 0), reallocarray(NULL, 0, 8),
                      aligned_alloc(64, 0), memalign(64, 0), valloc(0)};
    for (size_t i = 0; i < COUNT(blocks); i++) {
        CHECK(blocks[i] != NULL, "NULL from call %zu", i);
        for (size_t j = 0; j < i; j++)
            CHECK(blocks[i] != blocks[j], "calls %zu and %zu both gave %p", i, j, blocks[i]);
    }
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
}

TEST("calloc returns zeroed memory when it reuses dirty blocks of the same size") {
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            void *dirty[2] = {malloc(SIZES[i]), malloc(SIZES[i])};
            memset(dirty[0], 0xff, SIZES[i]);
            memset(dirty[1], 0xff, SIZES[i]);
            free(dirty[0]);
            free(dirty[1]);
            unsigned char *block = calloc(SIZES[i], 1);
            CHECK(block != NULL, "calloc(%zu)", SIZES[i]);
            size_t dirt = first_nonzero(block, SIZES[i]);
            CHECK(dirt == SIZES[i], "byte %zu of calloc(%zu) is %d", dirt, SIZES[i], block[dirt]);
            memset(block, 0xee, SIZES[i]);
            free(block);
        }
}

TEST("all bytes of malloc_usable_size can be written and survive realloc; for NULL it returns 0") {
    CHECK(malloc_usable_size(NULL) == 0, "%zu for NULL", malloc_usable_size(NULL));
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        void *block = malloc(SIZES[i]), *after = malloc(SIZES[i]);
        size_t usable = malloc_usable_size(block);
        CHECK(usable >= SIZES[i] && usable < SIZES[i] + SIZES[i] / 2 + 2 * MB, "%zu of %zu", usable, SIZES[i]);
        fill(after, SIZES[i], 2);
        fill(block, usable, 1);
        CHECK(first_mismatch(after, SIZES[i], 2) == SIZES[i], "usable bytes of a block of %zu reach into the next", SIZES[i]);
        block = realloc(block, usable + 5 * MB);
        CHECK(first_mismatch(block, usable, 1) == usable, "realloc lost usable bytes of %zu", SIZES[i]);
        free(block);
        free(after);
    }
}

TEST("blocks that libc allocates (strdup, asprintf, getline, getcwd, realpath) can be resized and freed") {
    char *text = strdup("twelve bytes"), *line = NULL, *printed = NULL, *here = getcwd(NULL, 0), *real = realpath("/proc/..", NULL);
    size_t capacity = 0;
    CHECK(asprintf(&printed, "%0*d", 300000, 7) == 300000, "asprintf");
    FILE *words = tmpfile();
    for (int i = 0; i < 400000; i++)
        fputs("0123456789", words);
    rewind(words);
    CHECK(getline(&line, &capacity, words) == 4000000, "getline");
    fclose(words);
    text = realloc(text, 9 * MB);
    CHECK(strcmp(text, "twelve bytes") == 0, "%s", text);
    line = realloc(line, 20);
    CHECK(memcmp(line, "01234567890123456789", 20) == 0, "%.20s", line);
    CHECK(here != NULL && strcmp(real, "/") == 0, "%s, %s", here, real);
    char *blocks[] = {text, line, printed, here, real};
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
}
