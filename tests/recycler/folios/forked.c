// parent and child of a fork keep what is theirs, and the child's blocks have the pages that it asks for, too
#include "folios.h"
#include <sys/wait.h>

int main(void) {
    char *blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = (char *)malloc(5 * MB);
        stamp_pages(blocks[i], 5 * MB, (unsigned)i);
    }
    free(blocks[7]);
    pid_t child = fork();
    CHECK(child >= 0);
    for (int i = 0; i < 7; i++) {
        // Either side writes to a page of each 64 KiB: copies of single pages.
        for (size_t at = (child == 0) * 4096; at < 5 * MB; at += 64 * KB)
            blocks[i][at] = pattern(at, (unsigned)i);
        CHECK(pages_match(blocks[i], 5 * MB, (unsigned)i), "block %d", i);
        if (i % 2 == 0)
            free(blocks[i]);
    }
    char *joined = (char *)malloc(18 * MB);
    stamp_pages(joined, 18 * MB, 3);
    CHECK(flag_shown(joined, 18 * MB, " hg") == 1 && pages_match(joined, 18 * MB, 3));
    for (int i = 1; i < 7; i += 2)
        CHECK(pages_match(blocks[i], 5 * MB, (unsigned)i), "block %d", i);
    if (child == 0)
        _exit(0);
    int status;
    waitpid(child, &status, 0);
    CHECK(status == 0, "the child: %x", status);
}
