// signal handlers of the program never run in the governor's thread, which is called flarena
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

static volatile sig_atomic_t handled;
static pid_t handler_thread;

static void handler(int signal) {
    (void)signal;
    handler_thread = (pid_t)syscall(SYS_gettid);
    handled++;
}

int main(void) {
    free_most(small_heap(100 * MB));
    await_governor();
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    // The program's only thread blocks the signal. If the governor did not, the signal would be delivered to it.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    sleep_ms(200);
    CHECK(handled == 0, "handled in thread %d of %d", handler_thread, getpid());
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(handled == 1 && handler_thread == getpid(), "handled %d times, in %d", (int)handled, handler_thread);
    return 0;
}
