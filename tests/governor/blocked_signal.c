// a SIGSYS that the program blocks waits for the program, and its handler runs in no other thread
#include "capabilities.h"

static volatile pid_t handled_in;

static void note_thread(int signal) {
    handled_in = (pid_t)syscall(SYS_gettid);
}

// Longer than the governor sleeps.
static void send_and_wait(void) {
    CHECK(kill(getpid(), SIGSYS) == 0, "kill: %d", errno);
    sleep_ms(1500);
}

int main(void) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGSYS);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    start_governor();
    send_and_wait();
    struct timespec patience = {30, 0};
    CHECK(sigtimedwait(&blocked, NULL, &patience) == SIGSYS, "sigtimedwait: %d", errno);
    struct sigaction action = {.sa_handler = note_thread};
    sigaction(SIGSYS, &action, NULL);
    send_and_wait();
    CHECK(handled_in == 0, "the handler ran in thread %d, while the process blocks the signal", handled_in);
    long before = cpu_us();
    sleep_ms(1000);
    CHECK(cpu_us() - before < 500000, "a pending signal costs %ld us of CPU time in a second", cpu_us() - before);
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    CHECK(handled_in == getpid(), "the handler ran in thread %d of process %d", handled_in, getpid());
}
