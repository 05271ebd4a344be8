// malloc_stats writes to stderr and not to stdout
#include "check.h"

int main(void) {
    int pipes[2][2];
    static char seen[2][1 << 16];
    free(malloc(5 * MB));
    CHECK(pipe2(pipes[0], O_NONBLOCK) == 0 && pipe2(pipes[1], O_NONBLOCK) == 0, "pipe: %s", strerror(errno));
    int saved = dup(2);
    dup2(pipes[0][1], 1);
    dup2(pipes[1][1], 2);
    malloc_stats();
    fflush(NULL);
    dup2(saved, 2);
    long out = read(pipes[0][0], seen[0], sizeof seen[0]), error = read(pipes[1][0], seen[1], sizeof seen[1] - 1);
    CHECK(out <= 0, "%ld bytes on stdout: %.200s", out, seen[0]);
    CHECK(error > 20, "%ld bytes on stderr", error);
    CHECK(strpbrk(seen[1], "0123456789") != NULL, "no number in: %.200s", seen[1]);
}
