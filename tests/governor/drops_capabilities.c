// a process with a governor drops capabilities by a raw system call; then setgid and setuid fail, and it goes on
#include "check.h"

#include <linux/capability.h>
#include <sys/syscall.h>

int main(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0, 0, 0}, {0, 0, 0}};
    if (geteuid() != 0)
        SKIP("needs root to have capabilities");
    free_most(small_heap(100 * MB));
    if (!mode_is("bare"))
        await_governor();
    CHECK(syscall(SYS_capset, &header, sets) == 0, "capset: %d", errno);
    CHECK(setgid(1234) == -1 && errno == EPERM, "setgid: errno %d", errno);
    CHECK(setuid(1234) == -1 && errno == EPERM, "setuid: errno %d", errno);
    free_most(small_heap(100 * MB));
    if (!mode_is("bare"))
        await_governor();
    CHECK(setuid(1234) == -1 && errno == EPERM, "setuid beside the next governor: errno %d", errno);
    return 0;
}
