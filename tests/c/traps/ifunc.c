// Blocks that are allocated while the loader relocates the program: the first ones of the process.
#include "tests.h"

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
