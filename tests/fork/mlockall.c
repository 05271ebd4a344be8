// a child of a process that locked all its memory caches as much as any other process, for it inherits no locks
#include "check.h"

enum { FREED_MB = 20, MOST_LOCKED_MB = 1 };

static void child(char *inherited) {
    // The limit holds only for a user without CAP_IPC_LOCK.
    struct rlimit most = {MOST_LOCKED_MB * MB, MOST_LOCKED_MB * MB};
    CHECK(setrlimit(RLIMIT_MEMLOCK, &most) == 0 && (geteuid() != 0 || seteuid(65534) == 0), "%s", strerror(errno));
    CHECK(proc_number("status", "VmLck") == 0, "%ld", proc_number("status", "VmLck"));
    free(inherited);
    long long cached = statistic("recycler", "cached_bytes");
    CHECK(cached >= (long)((FREED_MB - 2) * MB), "%lld bytes cached in the child", cached);
    _exit(0);
}

int main(void) {
    if (mode_is("bare"))
        SKIP("without the library there is no such cache");
    char *kept = malloc_touched(FREED_MB * MB, 1);
    if (mlockall(MCL_CURRENT) != 0)
        SKIP("this user may not lock memory");
    pid_t pid = fork();
    if (pid == 0)
        child(kept);
    CHECK_CHILD(pid);
}
