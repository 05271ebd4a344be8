// a program that closes all descriptors and reuses their numbers keeps its sockets, and the governor does not spin
#include "check.h"

static int listener(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address.sun_family) == 0, "socket: %d", errno);
    CHECK(listen(fd, 8) == 0, "listen: %d", errno);
    return fd;
}

int main(void) {
    start_governor();
    sleep_ms(300);
    // A daemon closes all descriptors at its start.
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int first = listener();
    int duplicate = fcntl(first, F_DUPFD, 500);
    CHECK(duplicate >= 500, "fcntl: %d", errno);
    struct sockaddr_un address;
    socklen_t length = sizeof address;
    CHECK(getsockname(first, (struct sockaddr *)&address, &length) == 0, "getsockname: %d", errno);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(client, (struct sockaddr *)&address, length) == 0, "connect: %d", errno);
    long long before = statistic("governor", "ticks");
    sleep_ms(3000);
    long long ticks = statistic("governor", "ticks") - before;
    CHECK(ticks < 100, "%lld ticks in 3 s", ticks);
    await_statistic("governor", "ticks", before + 1);
    // The client is still in the queue, so the governor has not accepted it.
    fcntl(first, F_SETFL, O_NONBLOCK);
    CHECK(accept(first, NULL, NULL) >= 0, "accept: %d", errno);
}
