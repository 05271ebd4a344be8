// Makes a gathered block (one whose pages were moved together), and finds one mapping inside it.
#pragma once

#include "vma_attributes.h"

#define PIECES 40
#define PIECE (4 * MB)
#define GATHERED (PIECES / 2 * PIECE)

static inline char *malloc_gathered(void) {
    // The governor may purge the pieces between the frees and the next block: then try again.
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
static inline size_t inner_mapping(const char *block, char **start) {
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

static inline int is_within(const char *part, size_t length, const char *block) {
    return block <= part && part + length <= block + GATHERED;
}
