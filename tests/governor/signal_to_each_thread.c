// a handler of SIGSYS, by which libpsx changes the capabilities of all threads, runs in each thread
#include "capabilities.h"

#include <signal.h>

static volatile int handled;

static void drop_in_thread(int signal) {
    (void)signal;
    drop_capabilities();
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED); // two threads may be here at once
}

int main(void) {
    int threads = count_threads(NULL);
    struct sigaction action = {.sa_handler = drop_in_thread};
    grow();
    if (!mode_is("bare"))
        threads++;
    sigaction(SIGSYS, &action, NULL);
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL, "cannot open /proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;)
        if (task->d_name[0] != '.')
            syscall(SYS_tgkill, getpid(), atoi(task->d_name), SIGSYS);
    closedir(tasks);
    for (int tenth = 0; tenth < 300 && handled < threads; tenth++)
        sleep_ms(100);
    CHECK(handled == threads, "%d of %d threads ran the handler", handled, threads);
    CHECK(setuid(geteuid()) == 0, "setuid: %d", errno);
    return 0;
}
