// a process with a governor keeps its capabilities over a change of user, and changes the user again
#include "check.h"
#include <grp.h>
#include <linux/capability.h>

static void raise_permitted(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    CHECK(syscall(SYS_capget, &header, sets) == 0, "capget: %d", errno);
    sets[0].effective = sets[0].permitted;
    sets[1].effective = sets[1].permitted;
    CHECK(syscall(SYS_capset, &header, sets) == 0, "capset: %d", errno);
}

// Each function that libc calls in every thread.
static int change(int function) {
    gid_t group = 3000;
    switch (function) {
    case 0: return setuid(3000);
    case 1: return seteuid(3000);
    case 2: return setreuid(3000, 3000);
    case 3: return setresuid(3000, 3000, 3000);
    case 4: return setgid(3000);
    case 5: return setegid(3000);
    case 6: return setregid(3000, 3000);
    case 7: return setresgid(3000, 3000, 3000);
    case 8: return setgroups(1, &group);
    default: return initgroups("root", 3000);
    }
}

int main(void) {
    if (geteuid() != 0)
        SKIP("needs root to change users");
    for (int function = 0; function < 10; function++) {
        pid_t child = fork();
        if (child == 0) {
            start_governor();
            CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0, "PR_SET_KEEPCAPS: %d", errno);
            CHECK(setresuid(1000, 1000, 1000) == 0, "setresuid: %d", errno);
            raise_permitted();
            CHECK(change(function) == 0, "errno %d", errno);
            _exit(0);
        }
        int status = await_child(child);
        CHECK(status == 0, "function %d: status %#x", function, status);
    }
}
