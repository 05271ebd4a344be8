// Processes with a governor that enter namespaces or change their user.
#include "tests.h"
#include <linux/capability.h>

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

TEST("a process with a governor enters a user namespace and a mount namespace; the next governor is in the same namespaces") {
    static const char *const namespaces[] = {"user", "mnt", "net"};
    IN_CHILD if (unshare(CLONE_NEWUSER) != 0 || unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
        SKIP("user namespaces are not allowed here");
    start_governor();
    pid_t child = vfork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) != 0);
    CHECK_CHILD(child);
    CHECK(mode_is("bare") || count_threads("flarena") == 1, "the vfork child has ended its parent's governor");
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
            // unshare waits 100 ms for the end of the governor, which a loaded machine exceeds.
            AWAIT(20, outside(namespaces[index]) == 0, "a thread is in another %s namespace", namespaces[index]);
        start_governor();
    }
    // The kernel refuses new threads to a process that has unshared the namespace of its children.
    CHECK(unshare(CLONE_NEWPID) == 0, "unshare(CLONE_NEWPID): %s", strerror(errno));
    CHECK(mode_is("bare") || count_threads("flarena") == 1, "the governor ended, and no other can start");
}

// The governor may wait for a lock that the interrupted code holds.
enum { RUNS = 300, MOST_SECONDS = 2 };

static volatile int runs, refused;
static volatile double longest;

static void unshare_working_folder(void) { refused |= unshare(CLONE_FS) != 0; }

static void set_effective(unsigned effective) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    refused |= syscall(SYS_capget, &header, sets) != 0;
    sets[0].effective = effective;
    refused |= syscall(SYS_capset, &header, sets) != 0;
}

// libc would end the process if the governor's thread had another answer.
static void fail_to_change_user(void) {
    set_effective(0);
    refused |= setuid(1234) != -1 || errno != EPERM;
    set_effective(1 << CAP_SETUID);
}

static void (*change)(void);

static void on_alarm(int signal) {
    int saved = errno;
    double start = clock_seconds(CLOCK_MONOTONIC);
    change();
    double seconds = clock_seconds(CLOCK_MONOTONIC) - start;
    if (seconds > longest)
        longest = seconds;
    runs++;
    errno = saved;
}

static void interrupt_malloc(void (*how)(void), const char *name) {
    static char *blocks[64];
    change = how;
    runs = 0;
    longest = 0;
    struct itimerval every = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    while (runs < RUNS)
        touch(replace_random(blocks, COUNT(blocks), 600 * KB, 3 * MB), 600 * KB, 1);
    setitimer(ITIMER_REAL, &never, NULL);
    for (size_t index = 0; index < COUNT(blocks); index++) {
        free(blocks[index]);
        blocks[index] = NULL;
    }
    CHECK(!refused, "%s had another result than without a governor", name);
    CHECK(longest < MOST_SECONDS, "%s took %.1f s", name, longest);
    if (!mode_is("bare"))
        AWAIT(30, (free(malloc_touched(100 * MB, 1)), count_threads("flarena") == 1), "no governor started after %s", name);
}

TEST("a signal handler that interrupts malloc changes a namespace or its user without a long wait, and a governor starts again") {
    signal(SIGALRM, on_alarm);
    start_governor();
    interrupt_malloc(unshare_working_folder, "unshare");
    if (geteuid() == 0)
        interrupt_malloc(fail_to_change_user, "setuid");
}
