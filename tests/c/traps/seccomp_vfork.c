// a vfork child that sets no_new_privs does not change its parent
#include "check.h"

int main(void) {
    for (int round = 0; round < 3; round++)
        free(malloc_touched(100 * MB, 1));
    if (!mode_is("bare"))
        await_governor();
    pid_t child = vfork();
    if (child == 0)
        _exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0);
    CHECK_CHILD(child);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0, "the parent has no_new_privs");
    if (!mode_is("bare"))
        CHECK(statistic("governor", "running") == 1, "the parent's governor has stopped");
}
