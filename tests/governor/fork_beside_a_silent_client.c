// a fork does not wait for the library's thread while that one waits for a client
#include "channel.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

// The library's thread waits a second for a client. A fork that waited for it, too, takes a fifth of that.
enum { FORKS = 6, ATTEMPTS = 10 };

static void fork_some(void) {
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(3 * MB));
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0, "the child: %#x", status);
    }
}

// The library's thread took the part of a request that there is, and waits for the end of it.
static void await_reader(int client) {
    int unread = 1;
    CHECK(send(client, "p", 1, MSG_NOSIGNAL) == 1, "send: %s", strerror(errno));
    for (int looks = 0; looks < 5000 && unread > 0; looks++) {
        sleep_ms(1);
        CHECK(ioctl(client, SIOCOUTQ, &unread) == 0, "SIOCOUTQ: %s", strerror(errno));
    }
    CHECK(unread == 0, "nobody reads");
}

static int client_outlasts_forks(void) {
    char byte;
    int client = -1;
    // Its thread has its name before it listens.
    for (int looks = 0; looks < 500 && (client = connect_to(getpid(), start_ticks())) < 0; looks++)
        sleep_ms(10);
    CHECK(client >= 0, "nobody listens");
    await_reader(client);
    fork_some();
    int waits = recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    close(client);
    return waits;
}

int main(void) {
    free_most(small_heap(100 * MB));
    await_governor();
    int attempt = 1;
    while (attempt <= ATTEMPTS && !client_outlasts_forks())
        attempt++;
    CHECK(attempt <= ATTEMPTS, "%d forks took longer than a client is waited for", FORKS);
    return 0;
}
