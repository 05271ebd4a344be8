// Blocks that are allocated before main.
#include "tests.h"

static void *early[3][COUNT(SIZES)];

static void allocate(int stage) {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        early[stage][i] = i % 2 ? malloc(SIZES[i]) : calloc(1, SIZES[i]);
        fill(early[stage][i], SIZES[i], (unsigned)(stage * 100) + (unsigned)i);
    }
}

// Runs before the constructors of all libraries, including libc.
static void preinit(int argc, char **argv, char **environment) {
    allocate(0);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(int, char **, char **) = preinit;

__attribute__((constructor(101))) static void first_constructor(void) {
    allocate(1);
}

__attribute__((constructor)) static void constructor(void) {
    allocate(2);
}

TEST("blocks allocated in the preinit array and in constructors are valid in main") {
    for (int stage = 0; stage < 3; stage++)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            size_t wrong = first_mismatch(early[stage][i], SIZES[i], (unsigned)(stage * 100) + (unsigned)i);
            CHECK(wrong == SIZES[i], "byte %zu of %zu from stage %d", wrong, SIZES[i], stage);
            if (i % 2)
                free(early[stage][i]);
            else
                free(realloc(early[stage][i], SIZES[i] + 3 * MB));
        }
}

// The first block of the process: the loader calls the resolver when it relocates the program.
static char *from_resolver;

static int answer(void) {
    return 42;
}

static int (*resolve(void))(void) {
    from_resolver = malloc(100);
    from_resolver[0] = 'x';
    return answer;
}

int chosen(void) __attribute__((ifunc("resolve")));

TEST("an IFUNC resolver can allocate, and its block is valid in main") {
    CHECK(chosen() == 42, "%d", chosen());
    CHECK(from_resolver != NULL && from_resolver[0] == 'x', "%p", (void *)from_resolver);
    free(from_resolver);
}
