// What a program did to its block does not reach the next user of the pages
#include "recycler.h"
#include <sys/wait.h>

enum { PROTECT, LOCK, NO_FORK, WIPE, ADVISE, ALL };

static void mark(int what, char *from, size_t bytes)
{
    switch (what) {
    case PROTECT: CHECK(mprotect(from, bytes, PROT_NONE) == 0); break;
    case LOCK: CHECK(mlock(from, bytes) == 0); break;
    case NO_FORK: CHECK(madvise(from, bytes, MADV_DONTFORK) == 0); break;
    case WIPE: CHECK(madvise(from, bytes, MADV_WIPEONFORK) == 0); break;
    case ADVISE: madvise(from, bytes, MADV_HUGEPAGE); break;
    }
}

// The next user of the same size writes, forks, and finds its bytes in the child.
static void check_next_user(size_t size)
{
    char *block = touched(size, 4);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (size_t at = 0; at < size; at += 4096)
            if (block[at] != 4)
                _exit(1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(status_bytes("VmLck:") == 0);
    free(block);
}

int main(void)
{
    size_t sizes[] = {MIB + 100, 2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB + 1, 8 * MIB, 40 * MIB};
    for (int what = 0; what < ALL; what++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int part = 0; part < 4; part++) {
                size_t size = sizes[i], page = 4096;
                char *block = touched(size, 1);
                size_t all = (size + page - 1) / page * page;
                size_t from = part == 2 ? all / 2 / page * page : part == 3 ? page : 0;
                size_t bytes = part == 0 ? all : part == 1 ? (all < 4 * MIB ? page : 2 * MIB) : all - from;
                mark(what, block + from, bytes);
                free(block);
                check_next_user(size);
            }
}
