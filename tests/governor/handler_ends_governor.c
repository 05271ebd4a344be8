// a signal handler that interrupts malloc changes a namespace or its user without a long wait, and a governor starts again
#include "capabilities.h"

// The governor may wait for a lock that the interrupted code holds.
enum { RUNS = 500, MOST_SECONDS = 2 };

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
    static void *blocks[64];
    change = how;
    runs = 0;
    longest = 0;
    struct itimerval every = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    for (unsigned random = 1; runs < RUNS; random = random * 1103515245 + 12345) {
        void **block = &blocks[(random >> 8) % COUNT(blocks)];
        free(*block);
        *block = malloc_touched(random >> 16 & 1 ? 3 * MB : 600 * KB + (random >> 4) % MB, 1);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    for (size_t index = 0; index < COUNT(blocks); index++) {
        free(blocks[index]);
        blocks[index] = NULL;
    }
    CHECK(!refused, "%s had another result than without a governor", name);
    CHECK(longest < MOST_SECONDS, "%s took %.1f s", name, longest);
    if (mode_is("bare"))
        return;
    for (int tenth = 0; tenth < 300 && count_threads("flarena") == 0; tenth++) {
        free(malloc_touched(100 * MB, 1));
        sleep_ms(100);
    }
    CHECK(count_threads("flarena") == 1, "no governor started after %s", name);
}

int main(void) {
    signal(SIGALRM, on_alarm);
    start_governor();
    interrupt_malloc(unshare_working_folder, "unshare");
    if (geteuid() == 0)
        interrupt_malloc(fail_to_change_user, "setuid");
}
