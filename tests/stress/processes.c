// Other processes: forked children that check every block and continue, started programs, and a helper that sends
// requests to the control channel.
#include "governor/channel.h"
#include "stress.h"
#include <spawn.h>

enum { CHILD_SECONDS = 60, CHILD_STEPS = 30 };
extern char **environ;

static void wait_for(pid_t child, const char *what) {
    int status;
    pid_t seen;
    while ((seen = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    MUST(seen == child, "waitpid: %s", strerror(errno));
    MUST(status == 0, "%s ended with status %#x", what, status);
}

// Ignores the status.
static void wait_for_end(pid_t child) {
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

static bool has_failed(pid_t child, const char *call) {
    MUST(child >= 0 || failures_expected || errno == EAGAIN || errno == ENOMEM, "%s: %s", call, strerror(errno));
    return child < 0;
}

// Skips blocks that another thread had locked at the fork.
static void check_all(void) {
    for (size_t i = 0; i < block_count; i++) {
        struct block *block = &blocks[i];
        if (!try_lock(block))
            continue;
        if (block->start != NULL && !block->hidden)
            check_block(block, block->size, "in a child");
        if (!block->hidden)
            unlock_block(block);
    }
}

void fork_and_check(struct worker *worker) {
    pid_t child = fork();
    if (has_failed(child, "fork"))
        return;
    if (child > 0) {
        wait_for(child, "a child");
        return;
    }
    alarm(CHILD_SECONDS);
    worker->in_child = true;
    check_all();
    for (int i = 0; i < CHILD_STEPS; i++)
        step(worker);
    if (one_in(worker, 2))
        exit(0);
    _exit(0);
}

// A vfork child shares its parent's memory, so that it allocates from the parent's heap.
static void vfork_and_allocate(struct worker *worker) {
    size_t size = random_size(worker) % (8 * MB);
    pid_t child = vfork();
    if (child == 0) {
        free(malloc(size));
        _exit(0);
    }
    if (!has_failed(child, "vfork"))
        wait_for(child, "a vfork child");
}

static void spawn(void) {
    char program[] = "/bin/true", *arguments[] = {program, NULL};
    pid_t child;
    int error = posix_spawn(&child, program, NULL, NULL, arguments, environ);
    MUST(error == 0 || failures_expected || error == EAGAIN || error == ENOMEM, "posix_spawn: %s", strerror(error));
    if (error == 0 && !failures_expected)
        wait_for(child, "/bin/true");
    else if (error == 0)
        wait_for_end(child);
}

void start_another(struct worker *worker) {
    if (one_in(worker, 2))
        vfork_and_allocate(worker);
    else
        spawn();
}

// Forks in a signal handler, as a supervisor may do. The child only calls async-signal-safe functions.
void fork_in_handler(int signal) {
    // A fork of gigabytes takes 100 ms, and later writes copy pages. Without this limit the program would only fork.
    static _Atomic double next;
    double start = clock_seconds(CLOCK_MONOTONIC);
    if (start < next)
        return;
    int saved = errno;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    // A raw call, because waitpid is a cancellation point and the interrupted thread may be inside malloc.
    while (child > 0 && syscall(SYS_wait4, child, NULL, 0, NULL) < 0 && errno == EINTR)
        ;
    double end = clock_seconds(CLOCK_MONOTONIC);
    next = end + 20 * (end - start);
    errno = saved;
}

static void send_requests(pid_t pid, unsigned long long ticks) {
    static const char *const requests[] = {"trim\n", "stats\n", "ping\n", "stats\nstats\n", "\n", "tri", "what\n", "who\n", "sites\n"};
    // With an even seed allocation sites do not start.
    const unsigned count = COUNT(requests) - (first_seed % 2 == 0 ? 1 : 0);
    char first[4096], rest[4096];
    for (unsigned round = 0;; round++) {
        int channel = connect_to(pid, ticks);
        const char *request = requests[round % count];
        if (channel >= 0) {
            if (send(channel, request, strlen(request), MSG_NOSIGNAL) > 0 && strchr(request, '\n') != NULL) {
                ssize_t length = read(channel, first, sizeof first - 1);
                while (read(channel, rest, sizeof rest) > 0)
                    ;
                first[length > 0 ? length : 0] = '\0';
                // The standard error of a run must be empty.
                if (strcmp(request, "sites\n") == 0 && length > 0 && strstr(first, "\"on\":true") == NULL)
                    dprintf(STDERR_FILENO, "sites did not start: %s\n", first);
            }
            close(channel);
        }
        usleep(20000);
    }
}

static void send_signals(pid_t pid, unsigned long long ticks) {
    // A fork takes up to 200 ms if it interrupts the recycler while the governor waits for the recycler's lock.
    for (;; usleep(100000))
        kill(pid, SIGUSR1);
}

pid_t start_requester(void) {
    return enabled[OUTSIDE] ? start_client(send_requests) : -1;
}

pid_t start_interrupter(void) {
    return enabled[SIGNALS] || enabled[SIGNAL_FORKS] ? start_client(send_signals) : -1;
}

void end_helper(pid_t helper) {
    if (helper > 0) {
        kill(helper, SIGKILL);
        wait_for_end(helper);
    }
}
