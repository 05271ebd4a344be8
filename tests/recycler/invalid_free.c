// free and realloc of an invalid pointer end the program with a message that contains the address
// qemu's user mode prints a line of its own at an abort
#include "check.h"

static char *left, *block, *right;

static void free_it(char *pointer) {
    free(pointer);
}

static void free_twice(char *pointer) {
    free(pointer);
    free(pointer);
}

static void realloc_freed(char *pointer) {
    free(pointer);
    CHECK(realloc(pointer, 9 * MB) != NULL);
}

static void realloc_it(char *pointer) {
    CHECK(realloc(pointer, 9 * MB) != NULL);
}

static void shrink_it(char *pointer) {
    CHECK(realloc(pointer, 100) != NULL);
}

// A child misuses the pointer: it must abort with exactly this message.
static void expect_abort(const char *what, void (*misuse)(char *), char *pointer, const char *message) {
    char seen[300] = "", expected[300];
    int ends[2], status;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        misuse(pointer);
        _exit(0);
    }
    close(ends[1]);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    ssize_t length = read(ends[0], seen, sizeof seen - 1);
    close(ends[0]);
    snprintf(expected, sizeof expected, "flarena: %s %p\n", message, (void *)pointer);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: status %x", what, status);
    CHECK(length >= 0 && strcmp(seen, expected) == 0, "%s: printed %s", what, seen);
}

int main(void) {
    const char *freed = "free(): double free of, or invalid pointer", *resized = "realloc(): freed or invalid pointer";
    left = malloc_touched(7 * MB, 1);
    block = malloc_touched(7 * MB, 2);
    right = malloc_touched(7 * MB, 3);
    expect_abort("a block, twice", free_twice, block, freed);
    for (size_t inside = 512 * KB; inside < 7 * MB; inside += 512 * KB)
        expect_abort("the inside of a block", free_it, block + inside, freed);
    expect_abort("the inside of a block", free_it, block + 512 * KB + 4080, freed);
    expect_abort("a freed block", realloc_freed, block, resized);
    for (size_t inside = 2 * MB; inside < 7 * MB; inside += 2 * MB) {
        expect_abort("the inside of a block", realloc_it, block + inside, resized);
        expect_abort("the inside of a block", shrink_it, block + inside, resized);
    }
    // Addresses inside a grown block at which other blocks once began.
    free(right);
    free(block);
    left = realloc(left, 20 * MB);
    for (size_t inside = 2 * MB; inside < 20 * MB; inside += 2 * MB)
        expect_abort("the inside of a block that grew", free_it, left + inside, freed);
    free(left);
}
