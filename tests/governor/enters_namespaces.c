// a process with a governor enters a user namespace and a mount namespace; the next governor is in the same namespaces
#include "capabilities.h"

// The number of threads that are not in the main thread's namespace.
static int outside(const char *namespace) {
    int count = 0;
    struct stat own, other;
    char path[300];
    snprintf(path, sizeof path, "/proc/self/ns/%s", namespace);
    CHECK(stat(path, &own) == 0, "%s: %d", path, errno);
    pid_t threads[MOST_LISTED];
    for (size_t all = list_numbers("/proc/self/task", threads, MOST_LISTED); all > 0; all--) {
        snprintf(path, sizeof path, "/proc/self/task/%d/ns/%s", threads[all - 1], namespace);
        count += stat(path, &other) == 0 && other.st_ino != own.st_ino;
    }
    return count;
}

int main(void) {
    static const char *const namespaces[] = {"user", "mnt", "net"};
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 && unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 ? 0 : 77);
    if (await_child(child) != 0)
        SKIP("user namespaces are not allowed here");
    start_governor();
    child = vfork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) != 0);
    CHECK_CHILD(child);
    if (!mode_is("bare"))
        CHECK(count_threads("flarena") == 1, "the vfork child has ended its parent's governor");
    CHECK(unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER): %s", strerror(errno));
    start_governor();
    CHECK(unshare(CLONE_NEWNS) == 0, "unshare(CLONE_NEWNS): %s", strerror(errno));
    start_governor();
    int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    CHECK(setns(mounts, CLONE_NEWNS) == 0, "setns of a mount namespace: %s", strerror(errno));
    start_governor();
    CHECK(unshare(CLONE_NEWNET) == 0, "unshare(CLONE_NEWNET): %s", strerror(errno));
    for (int round = 0; round < 2; round++) {
        for (size_t index = 0; index < COUNT(namespaces); index++)
            CHECK(outside(namespaces[index]) == 0, "a thread is in another %s namespace", namespaces[index]);
        start_governor();
    }
    // The kernel refuses new threads to a process that has unshared the namespace of its children.
    CHECK(unshare(CLONE_NEWPID) == 0, "unshare(CLONE_NEWPID): %s", strerror(errno));
    if (!mode_is("bare"))
        CHECK(count_threads("flarena") == 1, "the governor ended, and no other can start");
}
