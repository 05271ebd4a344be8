// libflarena.so opened by dlopen in a process without it either fails to load, or loads and owns nothing
#define SKIP_OWNER_CHECK
#include "check.h"

int main(int argc, char **argv) {
    char *before = malloc(3 * MB), *small = malloc(100);
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    if (library == NULL) {
        const char *reason = dlerror();
        CHECK(strstr(reason, "TLS") != NULL, "%s", reason);
        return 0;
    }
    free(before);
    free(small);
    int (*stats)(char *, size_t), (*trim)(void), (*mark)(const char *, const char *, long);
    const char *(*allocator)(void);
    static char json[1 << 16];
    *(void **)&stats = dlsym(library, "flarena_stats_json");
    *(void **)&trim = dlsym(library, "flarena_trim");
    *(void **)&mark = dlsym(library, "flarena_mark");
    *(void **)&allocator = dlsym(library, "flarena_allocator");
    CHECK(stats(json, sizeof json) > 0 && strstr(json, "\"owner\":false") != NULL, "%s", json);
    CHECK(allocator() != NULL, "no allocator");
    CHECK(trim() <= 0, "flarena_trim() = %d", trim());
    mark("stage", NULL, 0);
    for (size_t i = 0; i < COUNT(SIZES); i++)
        free(realloc(memset(malloc(SIZES[i]), 1, SIZES[i]), SIZES[i] * 2));
    CHECK(!ends_with(library_of(dlsym(RTLD_DEFAULT, "malloc")), "libflarena.so"), "the library replaced malloc");
    CHECK(dlclose(library) == 0, "%s", dlerror());
    free(malloc(5 * MB));
}
