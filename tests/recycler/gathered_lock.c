// whole units inside a gathered block that a program locked are locked for nobody once it is freed
#include "gathered.h"

int main(void) {
    if (mode_is("bare"))
        SKIP("a heap has no gathered blocks");
    // Between the two the governor may give the memory back: another round.
    for (int round = 0, reused = 0; !reused; round++) {
        char *start, *next, *block = gathered();
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
        CHECK(flag_shown(next, GATHERED, " lo") == 0, "the next user's block is locked");
        reused = is_within(start, length, next);
        CHECK(reused || round < 20, "no next user had this memory");
        free(next);
    }
}
