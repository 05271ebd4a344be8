// memory inside a gathered block that a program locked is unlocked when the block is freed
#include "gathered.h"

int main(void) {
    // The governor may purge the memory between free and malloc: then try again.
    for (int round = 0, reused = 0; !reused; round++) {
        char *start, *next, *block = malloc_gathered();
        size_t length = inner_mapping(block, &start);
        long before = proc_number("status", "VmLck");
        if (mlock(start, length) != 0) {
            CHECK(round == 0, "mlock: %s", strerror(errno));
            SKIP("this user may not lock memory");
        }
        CHECK(proc_number("status", "VmLck") == before + (long)length, "%ld bytes locked", proc_number("status", "VmLck"));
        free(block);
        CHECK(proc_number("status", "VmLck") == before, "%ld bytes locked after the free", proc_number("status", "VmLck"));
        next = malloc_touched(GATHERED, 3);
        CHECK(vma_flag(next, GATHERED, " lo") == 0, "the next block is locked");
        reused = is_within(start, length, next);
        CHECK(reused || round < 20, "no later block reused this memory");
        free(next);
    }
}
