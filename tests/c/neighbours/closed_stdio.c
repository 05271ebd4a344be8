// with stdin, stdout and stderr closed, the library writes nothing to the program's files that get these numbers
#include "check.h"

// argv[1]: the file to write.
int main(int argc, char **argv) {
    int file = open(argv[argc - 1], O_WRONLY | O_CREAT | O_TRUNC, 0600), last = file;
    CHECK(file == 0, "the lowest free descriptor is %d, not 0", file);
    while (last < 2)
        last = dup(file);
    CHECK(write(file, "data\n", 5) == 5, "write: %s", strerror(errno));
    // With markers on there is no stderr to write them to.
    int expected = getenv("NVFLARE_CLIENT_MEMORY_PROFILE") != NULL ? -1 : 0;
    for (int i = 0; i < 3; i++)
        CHECK(flarena_mark("stage", "site", i) == expected, "mark: %s", strerror(errno));
    free(malloc(40 * MB));
    struct stat status;
    fstat(file, &status);
    CHECK(status.st_size == 5, "the file grew to %ld bytes", (long)status.st_size);
}
