// Programs with a governor that change their capabilities or their user.
#include "tests.h"
#include <grp.h>
#include <linux/capability.h>

enum { SETUID_ONLY = 1 << CAP_SETUID };

int capset(cap_user_header_t header, const cap_user_data_t sets);

static struct __user_cap_header_struct header_of(pid_t thread) {
    return (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, thread};
}

// Drops all capabilities of this thread by a raw system call.
static void drop_capabilities(void) {
    struct __user_cap_header_struct header = header_of(0);
    struct __user_cap_data_struct sets[2] = {{0, 0, 0}, {0, 0, 0}};
    CHECK(syscall(SYS_capset, &header, sets) == 0, "capset: %d", errno);
}

static void check_setgid_is_refused(void) {
    CHECK(setgid(1234) == -1 && errno == EPERM, "setgid: errno %d", errno);
}

static void start_governor_as_root(void) {
    if (geteuid() != 0)
        SKIP("needs root to have capabilities");
    start_governor();
}

// The permitted capabilities of all threads together.
static unsigned long long permitted(void) {
    unsigned long long all = 0;
    pid_t threads[MOST_LISTED];
    for (size_t count = list_numbers("/proc/self/task", threads, MOST_LISTED); count > 0; count--) {
        struct __user_cap_header_struct header = header_of(threads[count - 1]);
        struct __user_cap_data_struct sets[2];
        if (syscall(SYS_capget, &header, sets) == 0)
            all |= sets[0].permitted | (unsigned long long)sets[1].permitted << 32;
    }
    return all;
}

TEST("no thread keeps a capability that the program has given up by capset") {
    struct __user_cap_header_struct header = header_of(0);
    struct __user_cap_data_struct sets[2] = {{0, SETUID_ONLY, 0}, {0, 0, 0}};
    start_governor_as_root();
    CHECK(capset(&header, sets) == 0, "capset: %d", errno);
    CHECK(permitted() == SETUID_ONLY, "a thread has the capabilities %llx", permitted());
    start_governor();
    CHECK(permitted() == SETUID_ONLY, "the next governor has the capabilities %llx", permitted());
    // A program that only lowers and raises the effective set keeps its governor.
    sets[0].effective = SETUID_ONLY;
    CHECK(capset(&header, sets) == 0, "capset: %d", errno);
    CHECK(mode_is("bare") || count_threads("flarena") == 1, "the governor ended although nothing was given up");
}

TEST("a process with a governor drops capabilities by a raw system call; then setgid and setuid fail, and it goes on") {
    start_governor_as_root();
    drop_capabilities();
    check_setgid_is_refused();
    CHECK(setuid(1234) == -1 && errno == EPERM, "setuid: errno %d", errno);
    start_governor();
    CHECK(setuid(1234) == -1 && errno == EPERM, "setuid beside the next governor: errno %d", errno);
}

static pthread_barrier_t barrier;

static void *set_group(void *unused) {
    pthread_barrier_wait(&barrier);
    check_setgid_is_refused();
    return unused;
}

TEST("two threads that call setgid at once after the process has dropped capabilities both get the kernel's answer") {
    pthread_t threads[2];
    start_governor_as_root();
    drop_capabilities();
    pthread_barrier_init(&barrier, NULL, 2);
    start_threads(threads, 2, set_group);
    join_threads(threads, 2);
}

static volatile int handled;

static void drop_in_thread(int signal) {
    drop_capabilities();
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED); // two threads may be here at once
}

TEST("a handler of SIGSYS, by which libpsx changes the capabilities of all threads, runs in each thread") {
    int threads = count_threads(NULL) + !mode_is("bare");
    start_governor();
    signal(SIGSYS, drop_in_thread);
    pid_t all[MOST_LISTED];
    for (size_t count = list_numbers("/proc/self/task", all, MOST_LISTED); count > 0; count--)
        syscall(SYS_tgkill, getpid(), all[count - 1], SIGSYS);
    AWAIT(30, handled == threads, "%d of %d threads ran the handler", handled, threads);
    CHECK(setuid(geteuid()) == 0, "setuid: %d", errno);
}

static volatile pid_t handled_in;

static void note_thread(int signal) {
    handled_in = (pid_t)syscall(SYS_gettid);
}

// Longer than the governor sleeps.
static void send_and_wait(void) {
    CHECK(kill(getpid(), SIGSYS) == 0, "kill: %d", errno);
    sleep_ms(1500);
}

TEST("a SIGSYS that the program blocks waits for the program, and its handler runs in no other thread") {
    sigset_t blocked = mask_signal(SIG_BLOCK, SIGSYS);
    start_governor();
    send_and_wait();
    struct timespec patience = {30, 0};
    CHECK(sigtimedwait(&blocked, NULL, &patience) == SIGSYS, "sigtimedwait: %d", errno);
    signal(SIGSYS, note_thread);
    long before = cpu_us();
    send_and_wait();
    CHECK(handled_in == 0, "the handler ran in thread %d, while the process blocks the signal", handled_in);
    CHECK(cpu_us() - before < 500000, "a pending signal costs %ld us of CPU time", cpu_us() - before);
    mask_signal(SIG_UNBLOCK, SIGSYS);
    CHECK(handled_in == getpid(), "the handler ran in thread %d of process %d", handled_in, getpid());
}

static void raise_permitted(void) {
    struct __user_cap_header_struct header = header_of(0);
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

TEST("a process with a governor keeps its capabilities over a change of user, and changes the user again") {
    if (geteuid() != 0)
        SKIP("needs root to change users");
    for (int function = 0; function < 10; function++)
        IN_CHILD {
            start_governor();
            CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0, "PR_SET_KEEPCAPS: %d", errno);
            CHECK(setresuid(1000, 1000, 1000) == 0, "setresuid: %d", errno);
            raise_permitted();
            CHECK(change(function) == 0, "function %d: errno %d", function, errno);
        }
}
