// a client that sends one byte at a time delays other clients less than 30 s
#include "channel.h"

static void send_slowly(pid_t server, unsigned long long ticks) {
    int fd = connect_to(server, ticks);
    for (int byte = 0; byte < 200 && send(fd, "x", 1, MSG_NOSIGNAL) == 1; byte++)
        sleep_ms(500);
}

int main(void) {
    start_governor_and_channel();
    pid_t child = start_client(send_slowly);
    sleep_ms(300);
    int fd = connect_to(getpid(), start_ticks());
    CHECK(fd >= 0 && answers_ping(fd), "another client gets no answer within 30 s");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
