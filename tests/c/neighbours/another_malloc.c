// if another library owns malloc, it serves the process, and flarena_stats_json says so
#define SKIP_OWNER_CHECK
#include "check.h"

extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void cfree(void *block) __attribute__((weak));

// argv[1]: a part of the name of the file whose malloc must be the one in use.
int main(int argc, char **argv) {
    const char *owner = library_of(dlsym(RTLD_DEFAULT, "malloc"));
    CHECK(argc == 2 && strstr(owner, argv[1]) != NULL, "malloc belongs to %s", owner);
    for (size_t i = 0; i + 1 < COUNT(SIZES); i++) {
        char *block = malloc(SIZES[i]);
        fill(block, SIZES[i], 1);
        block = realloc(block, SIZES[i] + 1000);
        CHECK(first_mismatch(block, SIZES[i], 1) == SIZES[i], "bytes were lost");
        free(block);
        free(calloc(1, SIZES[i]));
        free(strdup("text"));
        CHECK(posix_memalign((void **)&block, 64, SIZES[i]) == 0, "posix_memalign");
        // Functions that the other allocator lacks come from flarena. They must work on its blocks.
        block = reallocarray(block, 2, SIZES[i]);
        fill(block, SIZES[i] * 2, 1);
        free(block);
        block = pvalloc(SIZES[i]);
        CHECK((uintptr_t)block % 4096 == 0, "pvalloc: %p", (void *)block);
        free_sized(block, SIZES[i]);
        cfree(valloc(SIZES[i]));
    }
    static char json[1 << 16];
    CHECK(flarena_stats_json != NULL, "the library is not loaded");
    CHECK(flarena_stats_json(json, sizeof json) > 0 && strstr(json, "\"owner\":false") != NULL, "%s", json);
    int trimmed = flarena_trim();
    CHECK(trimmed == -1, "flarena_trim() = %d", trimmed);
    flarena_mark("stage", "site", 1);
}
