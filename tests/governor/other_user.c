// another user who connects again and again costs the governor little CPU, and the process still answers its own user
#include "channel.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static long cpu_ms(void) {
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000;
}

int main(void) {
    if (geteuid() != 0)
        SKIP("needs root to become another user");
    free_most(small_heap(100 * MB));
    await_started_governor();
    sleep_ms(2500); // the idle trim is over
    pid_t self = getpid();
    unsigned long long start = start_ticks();
    pid_t child = fork();
    if (child == 0) {
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0, "setresuid: %d", errno);
        prctl(PR_SET_PDEATHSIG, SIGKILL); // ends with the parent, also if that crashes
        while (getppid() == self) {
            int fd = connect_to(self, start);
            if (fd >= 0)
                close(fd);
        }
    }
    sleep_ms(1500);
    long before = cpu_ms();
    sleep_ms(3000);
    long used = cpu_ms() - before;
    CHECK(used < 300, "%ld ms of CPU in 3 s", used);
    int fd = connect_to(self, start);
    CHECK(fd >= 0 && answers_ping(fd), "the process does not answer its own user");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
