// a program that starts behind the seccomp filter of a service manager, which kills, runs as it does without the library
// qemu's user mode does not implement seccomp
#include "seccomp_filter.h"

#define KILL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

// Kills at system calls that an allocator might make but that systemd's @system-service without @resources forbids.
static void restart_behind_filter(char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(pkey_mprotect), KILL(pkey_alloc), KILL(pkey_free), KILL(mincore), KILL(mbind), KILL(move_pages), KILL(migrate_pages),
        KILL(set_mempolicy), KILL(sched_setaffinity), KILL(sched_setattr), KILL(sched_setparam), KILL(sched_setscheduler),
        KILL(setpriority), KILL(ioprio_set), KILL(setrlimit), KILL(pidfd_getfd), KILL(ptrace), KILL(perf_event_open), KILL(bpf),
        KILL(process_madvise),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    setenv("INVOCATION_ID", "a service", 1);
    install_filter(filter, COUNT(filter), 0);
    execl("/proc/self/exe", argv[0], "behind", NULL);
    CHECK(0, "exec: %s", strerror(errno));
}

int main(int argc, char **argv) {
    if (argc == 1)
        restart_behind_filter(argv);
    free_most(small_heap(100 * MB));
    for (size_t round = 0; round < 3; round++)
        use_malloc_family(3 * MB);
    if (!mode_is("bare"))
        await_governor();
    // Replaces the stderr that the governor has seen, for longer than two of its ticks.
    CHECK(dup2(open("/dev/null", O_WRONLY), STDERR_FILENO) == STDERR_FILENO, "dup2");
    sleep(2);
    malloc_trim(0);
}
