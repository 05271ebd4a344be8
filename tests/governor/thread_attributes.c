// the governor inherits neither scheduling class, nor CPUs, nor nice value, nor signal mask from the thread that starts it
#include "channel.h"

static pid_t governor_thread(void) {
    pid_t threads[MOST_LISTED];
    for (size_t count = list_numbers("/proc/self/task", threads, MOST_LISTED); count > 0; count--)
        if (thread_has_name(threads[count - 1], "flarena"))
            return threads[count - 1];
    CHECK(0, "there is no governor thread");
}

static int may_use_real_time = 1;

static void *start_in_thread(void *unused) {
    struct sched_param priority = {.sched_priority = 10};
    run_on_cpu(sched_getcpu());
    CHECK(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 15) == 0, "setpriority: %d", errno);
    may_use_real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    start_governor();
    return unused;
}

int main(void) {
    pthread_t starter;
    start_threads(&starter, 1, start_in_thread);
    join_threads(&starter, 1);
    close(await_channel(getpid(), start_ticks())); // it sets its attributes first
    pid_t governor = governor_thread();
    CHECK(sched_getscheduler(governor) == SCHED_OTHER, "class %d", sched_getscheduler(governor));
    cpu_set_t mine, its;
    sched_getaffinity(0, sizeof mine, &mine);
    sched_getaffinity(governor, sizeof its, &its);
    CHECK(CPU_EQUAL(&mine, &its), "%d CPUs instead of %d", CPU_COUNT(&its), CPU_COUNT(&mine));
    // Lowering the nice value from 15 to 0 needs a privilege.
    int nice = getpriority(PRIO_PROCESS, (id_t)governor);
    CHECK(nice == getpriority(PRIO_PROCESS, 0) || geteuid() != 0, "nice %d", nice);
    // All signals but SIGKILL and SIGSTOP, which cannot be blocked, and the two of libc.
    char path[64];
    snprintf(path, sizeof path, "task/%d/status", governor);
    const char *blocked = proc_text(path, "SigBlk");
    CHECK(blocked != NULL, "%s", path);
    unsigned long long unblocked = ~strtoull(blocked, NULL, 16) & ~(1ULL << 8 | 1ULL << 18 | 3ULL << 31);
    CHECK(unblocked == 0, "signals %#llx are not blocked", unblocked);
    if (!may_use_real_time || CPU_COUNT(&mine) == 1)
        SKIP("this process may not use real-time scheduling, or has one CPU only");
}
