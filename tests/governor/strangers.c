// another user who connects without end costs the governor little, and keeps nobody from being answered
#include "channel.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static long ticks_of_cpu(void) {
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000;
}

int main(void) {
    if (geteuid() != 0)
        SKIP("needs root, to become another user");
    free_most(small_heap(100 * MB));
    await_governor();
    sleep_ms(2500); // the idle trim is over
    pid_t self = getpid();
    unsigned long long start = start_ticks();
    pid_t child = fork();
    if (child == 0) {
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0, "setresuid: %d", errno);
        prctl(PR_SET_PDEATHSIG, SIGKILL); // whatever this program dies of
        while (getppid() == self) {
            int fd = connect_to(self, start);
            if (fd >= 0)
                close(fd);
        }
    }
    sleep_ms(1500);
    long before = ticks_of_cpu();
    sleep_ms(3000);
    long used = ticks_of_cpu() - before;
    CHECK(used < 300, "%ld ms of CPU in 3 s", used);
    int fd = connect_to(self, start);
    CHECK(fd >= 0 && answers(fd), "its own user is not answered");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
