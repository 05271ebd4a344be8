// a process with a governor enters a user namespace and a mount namespace; the next governor is in the same namespaces
#include "capabilities.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

// The number of threads that are not in the main thread's namespace.
static int outside(const char *namespace) {
    int count = 0;
    struct stat own, other;
    char path[300];
    snprintf(path, sizeof path, "/proc/self/ns/%s", namespace);
    CHECK(stat(path, &own) == 0, "%s: %d", path, errno);
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL, "cannot open /proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/ns/%s", task->d_name, namespace);
        count += task->d_name[0] != '.' && stat(path, &other) == 0 && other.st_ino != own.st_ino;
    }
    closedir(tasks);
    return count;
}

int main(void) {
    static const char *const namespaces[] = {"user", "mnt", "net"};
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 && unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 ? 0 : 77);
    if (await_child(child) != 0)
        SKIP("user namespaces are not allowed here");
    grow();
    child = vfork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) != 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the vfork child ended with status %#x", status);
    if (!mode_is("bare"))
        CHECK(count_threads("flarena") == 1, "the vfork child has ended its parent's governor");
    CHECK(unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER): %s", strerror(errno));
    grow();
    CHECK(unshare(CLONE_NEWNS) == 0, "unshare(CLONE_NEWNS): %s", strerror(errno));
    grow();
    int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    CHECK(setns(mounts, CLONE_NEWNS) == 0, "setns of a mount namespace: %s", strerror(errno));
    grow();
    CHECK(unshare(CLONE_NEWNET) == 0, "unshare(CLONE_NEWNET): %s", strerror(errno));
    for (int round = 0; round < 2; round++) {
        for (size_t index = 0; index < COUNT(namespaces); index++)
            CHECK(outside(namespaces[index]) == 0, "a thread is in another %s namespace", namespaces[index]);
        grow();
    }
    // The kernel refuses new threads to a process that has unshared the namespace of its children.
    CHECK(unshare(CLONE_NEWPID) == 0, "unshare(CLONE_NEWPID): %s", strerror(errno));
    if (!mode_is("bare"))
        CHECK(count_threads("flarena") == 1, "the governor ended, and no other can start");
    return 0;
}
