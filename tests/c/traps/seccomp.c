// Programs that restrict themselves, and programs that start behind a filter.
#include "seccomp_filter.h"
#include "tests.h"
#include <linux/seccomp.h>

TEST("behind a filter that kills at other calls, the malloc family makes only the system calls of glibc's malloc") {
    install_malloc_filter(0);
    use_malloc_family(100);
    use_malloc_family(70 * KB);
    use_malloc_family(3 * MB);
    use_malloc_family(3 * MB);
    // Enough small blocks to start a governor.
    free_most(small_heap(150 * MB));
    use_malloc_family(8 * MB);
}

TEST("a seccomp filter that kills and is installed for all threads (TSYNC) does not hit the governor") {
    char *block = malloc_touched(100 * MB, 1);
    free(block);
    block = malloc_touched(100 * MB, 1);
    await_governor();
    install_malloc_filter(SECCOMP_FILTER_FLAG_TSYNC);
    // The vDSO reads the clock without a system call; where it cannot, the filter allows the call.
    for (time_t end = time(NULL) + 4; time(NULL) < end;) {
        free(block);
        block = malloc_touched(100 * MB, 2);
    }
    free(block);
    malloc_trim(0);
}

#define KILL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

TEST("a program that starts behind the seccomp filter of a service manager runs as it does without the library") {
    // qemu's user mode does not implement seccomp
    // Kills at system calls that an allocator might make but that systemd's @system-service without @resources forbids.
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(pkey_mprotect), KILL(pkey_alloc), KILL(pkey_free), KILL(mincore), KILL(mbind), KILL(move_pages), KILL(migrate_pages),
        KILL(set_mempolicy), KILL(sched_setaffinity), KILL(sched_setattr), KILL(sched_setparam), KILL(sched_setscheduler),
        KILL(setpriority), KILL(ioprio_set), KILL(setrlimit), KILL(pidfd_getfd), KILL(ptrace), KILL(perf_event_open), KILL(bpf),
        KILL(process_madvise),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (getenv("INVOCATION_ID") == NULL)
        install_filter(filter, COUNT(filter), 0);
    restart_with("INVOCATION_ID", "a service");
    start_governor();
    for (size_t round = 0; round < 3; round++)
        use_malloc_family(3 * MB);
    // Replaces the stderr that the governor has seen, for longer than two of its ticks.
    CHECK(dup2(open("/dev/null", O_WRONLY), STDERR_FILENO) == STDERR_FILENO, "dup2");
    sleep(2);
    malloc_trim(0);
}

TEST("a second PR_SET_NO_NEW_PRIVS behind a seccomp filter makes no system call but prctl") {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(prctl), ALLOW(write), ALLOW(exit_group), ALLOW(munmap), ALLOW(madvise), ALLOW(futex),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    install_filter(filter, COUNT(filter), 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "the second prctl: %s", strerror(errno));
}

TEST("behind a seccomp filter that kills at getpid, prlimit and fork do not call it in a restricted program") {
    struct sock_filter filter[] = {ANSWER_CALL(getpid, SECCOMP_RET_KILL_PROCESS)};
    struct rlimit limit;
    pid_t self = getpid();
    install_filter(filter, COUNT(filter), 0);
    CHECK(getrlimit(RLIMIT_CORE, &limit) == 0, "getrlimit: %s", strerror(errno));
    CHECK(prlimit(self, RLIMIT_CORE, &limit, NULL) == 0, "prlimit: %s", strerror(errno));
    IN_CHILD free(malloc_touched(3 * MB, 1));
}

TEST("a vfork child that sets no_new_privs does not change its parent") {
    for (int round = 0; round < 3; round++)
        free(malloc_touched(100 * MB, 1));
    await_governor();
    pid_t child = vfork();
    if (child == 0)
        _exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0);
    CHECK_CHILD(child);
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0, "the parent has no_new_privs");
    CHECK(mode_is("bare") || statistic("governor", "running") == 1, "the parent's governor has stopped");
}

// A second of small blocks: longer than the pauses between two returns of memory.
enum { ROUNDS = 20000000 };

static void replace_small_blocks(char **blocks, size_t count, unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++)
        CHECK(replace_random(blocks, count, 1, 1000) != NULL);
}

static void child(void) {
    static char *large[8], *blocks[256], *spare[1024];
    // glibc gives blocks of up to this size no mapping of their own from now on.
    free(malloc_touched(24 * MB, 1));
    for (size_t index = 0; index < COUNT(large); index++)
        large[index] = malloc_touched(2 * MB, 1);
    replace_small_blocks(blocks, COUNT(blocks), 100000);
    // Free memory below blocks that stay: a trim of the heap, due if the sleep below takes long, does not return it.
    replace_small_blocks(spare, COUNT(spare), 100000);
    for (size_t index = 0; index < COUNT(spare); index++)
        if (index % 100 != 0)
            free(spare[index]);
    // Cached pages become old enough to be returned.
    free(large[0]);
    sleep_ms(500);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        SKIP("this kernel has no strict seccomp mode");
    for (size_t index = 1; index < COUNT(large); index++)
        free(large[index]);
    replace_small_blocks(blocks, COUNT(blocks), ROUNDS);
    syscall(SYS_exit, 0);
}

TEST("in seccomp's strict mode a program allocates small blocks from free memory, and frees small and large ones") {
    IN_CHILD child();
}
