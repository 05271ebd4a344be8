// a handler of SIGSYS, by which libpsx changes the capabilities of all threads, runs in each thread
#include "capabilities.h"

static volatile int handled;

static void drop_in_thread(int signal) {
    drop_capabilities();
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED); // two threads may be here at once
}

int main(void) {
    int threads = count_threads(NULL);
    struct sigaction action = {.sa_handler = drop_in_thread};
    start_governor();
    if (!mode_is("bare"))
        threads++;
    sigaction(SIGSYS, &action, NULL);
    pid_t all[MOST_LISTED];
    for (size_t count = list_numbers("/proc/self/task", all, MOST_LISTED); count > 0; count--)
        syscall(SYS_tgkill, getpid(), all[count - 1], SIGSYS);
    for (int tenth = 0; tenth < 300 && handled < threads; tenth++)
        sleep_ms(100);
    CHECK(handled == threads, "%d of %d threads ran the handler", handled, threads);
    CHECK(setuid(geteuid()) == 0, "setuid: %d", errno);
}
