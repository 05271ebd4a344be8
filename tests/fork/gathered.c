// a forked child reads all of a block on whose whole inner units the last user had put MADV_DONTFORK
#include "../recycler/gathered.h"

int main(void) {
    if (mode_is("bare"))
        SKIP("a heap has no gathered blocks");
    // Between the two the governor may give the memory back: another round.
    for (int round = 0, reused = 0; !reused; round++) {
        int status;
        char *start, *next, *block = malloc_gathered();
        size_t length = inner_mapping(block, &start);
        CHECK(madvise(start, length, MADV_DONTFORK) == 0, "madvise: %s", strerror(errno));
        free(block);
        next = malloc(GATHERED);
        stamp_pages(next, GATHERED, 3);
        pid_t child = fork();
        if (child == 0)
            _exit(!pages_match(next, GATHERED, 3));
        CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with status %x", status);
        reused = is_within(start, length, next);
        CHECK(reused || round < 20, "no next user had this memory");
        free(next);
    }
}
