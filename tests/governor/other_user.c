// another user who connects again and again costs the governor little CPU, and the process still answers its own user
#include "channel.h"

static void connect_as_other_user(pid_t server, unsigned long long ticks) {
    CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0, "setresuid: %d", errno);
    prctl(PR_SET_PDEATHSIG, SIGKILL); // the change of user has cleared it
    while (getppid() == server) {
        int fd = connect_to(server, ticks);
        if (fd >= 0)
            close(fd);
    }
}

int main(void) {
    if (geteuid() != 0)
        SKIP("needs root to become another user");
    start_governor_and_channel();
    sleep_ms(2500); // the idle trim is over
    pid_t child = start_client(connect_as_other_user);
    sleep_ms(1500);
    long before = cpu_us();
    sleep_ms(3000);
    long used = cpu_us() - before;
    CHECK(used < 300000, "%ld us of CPU in 3 s", used);
    int fd = connect_to(getpid(), start_ticks());
    CHECK(fd >= 0 && answers_ping(fd), "the process does not answer its own user");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
