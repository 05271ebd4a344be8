// Gives up capabilities.
#include "check.h"
#include <linux/capability.h>

// Drops all capabilities of this thread by a raw system call.
static inline void drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0, 0, 0}, {0, 0, 0}};
    CHECK(syscall(SYS_capset, &header, sets) == 0, "capset: %d", errno);
}
