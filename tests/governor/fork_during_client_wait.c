// a fork does not wait for a governor that waits for a client
#include "channel.h"
#include <linux/sockios.h>
#include <sys/ioctl.h>

// The governor waits a second for a client. If a fork waited for the governor, it would take a fifth of that.
enum { FORKS = 6, ATTEMPTS = 10 };

static void fork_some(void) {
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(3 * MB));
            _exit(0);
        }
        CHECK_CHILD(child);
    }
}

// Sends a part of a request, and returns when the governor has read it and waits for the rest.
static void send_partial_request(int client) {
    int unread = 1;
    CHECK(send(client, "p", 1, MSG_NOSIGNAL) == 1, "send: %s", strerror(errno));
    for (int attempt = 0; attempt < 5000 && unread > 0; attempt++) {
        sleep_ms(1);
        CHECK(ioctl(client, SIOCOUTQ, &unread) == 0, "SIOCOUTQ: %s", strerror(errno));
    }
    CHECK(unread == 0, "the governor does not read");
}

static int governor_waits_after_forks(void) {
    char byte;
    int client = await_channel(getpid(), start_ticks());
    send_partial_request(client);
    fork_some();
    int is_waiting = recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    close(client);
    return is_waiting;
}

int main(void) {
    start_governor();
    int attempt = 1;
    while (attempt <= ATTEMPTS && !governor_waits_after_forks())
        attempt++;
    CHECK(attempt <= ATTEMPTS, "%d forks took longer than the governor waits for a client", FORKS);
}
