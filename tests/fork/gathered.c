// a forked child can read all of a gathered block whose memory had MADV_DONTFORK before
#include "../recycler/gathered.h"

int main(void) {
    if (mode_is("bare"))
        SKIP("other allocators have no gathered blocks");
    // The governor may purge the memory between free and malloc: then try again.
    for (int round = 0, reused = 0; !reused; round++) {
        char *start, *next, *block = malloc_gathered();
        size_t length = inner_mapping(block, &start);
        CHECK(madvise(start, length, MADV_DONTFORK) == 0, "madvise: %s", strerror(errno));
        free(block);
        next = malloc(GATHERED);
        stamp_pages(next, GATHERED, 3);
        pid_t child = fork();
        if (child == 0)
            _exit(!pages_match(next, GATHERED, 3));
        CHECK_CHILD(child);
        reused = is_within(start, length, next);
        CHECK(reused || round < 20, "no later block reused this memory");
        free(next);
    }
}
