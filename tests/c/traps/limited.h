// Limits are set before a program starts: by a shell, a batch system, systemd.
#pragma once

#include "../check.h"

#include <sys/resource.h>

// Starts the program again under the limit, which the second start finds set.
static void start_limited(int argc, char **argv, int resource, rlim_t bytes) {
    struct rlimit limit = {bytes, RLIM_INFINITY};
    if (argc > 1)
        return;
    char *again[] = {argv[0], "limited", NULL};
    CHECK(setrlimit((__rlimit_resource_t)resource, &limit) == 0, "setrlimit: %s", strerror(errno));
    execv("/proc/self/exe", again);
    CHECK(0, "execv: %s", strerror(errno));
}
