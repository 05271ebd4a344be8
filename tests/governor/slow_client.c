// a client that sends one byte at a time delays other clients less than 30 s
#include "channel.h"

#include <signal.h>
#include <sys/wait.h>

int main(void) {
    free_most(small_heap(100 * MB));
    await_started_governor();
    pid_t self = getpid();
    unsigned long long ticks = start_ticks();
    pid_t child = fork();
    if (child == 0) {
        int fd = connect_to(self, ticks);
        for (int byte = 0; byte < 200 && getppid() == self && send(fd, "x", 1, MSG_NOSIGNAL) == 1; byte++)
            sleep_ms(500);
        _exit(0);
    }
    sleep_ms(300);
    int fd = connect_to(self, ticks);
    CHECK(fd >= 0 && answers_ping(fd), "another client gets no answer within 30 s");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
