// Clients of the control channel that are slow, or of another user.
#include "channel.h"
#include "tests.h"
#include <linux/sockios.h>
#include <sys/ioctl.h>

static void become(uid_t user) {
    CHECK(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0, "setresuid: %d", errno);
}

static void check_own_user_is_answered(void) {
    int fd = connect_to(getpid(), start_ticks());
    CHECK(fd >= 0 && answers_ping(fd), "another client gets no answer within 30 s");
}

static void send_slowly(pid_t server, unsigned long long ticks) {
    int fd = connect_to(server, ticks);
    for (int byte = 0; byte < 200 && send(fd, "x", 1, MSG_NOSIGNAL) == 1; byte++)
        sleep_ms(500);
}

TEST("a client that sends one byte at a time delays other clients less than 30 s") {
    start_governor_and_channel();
    pid_t child = start_client(send_slowly);
    sleep_ms(300);
    check_own_user_is_answered();
    end_client(child);
}

static void connect_as_other_user(pid_t server, unsigned long long ticks) {
    become(65534);
    prctl(PR_SET_PDEATHSIG, SIGKILL); // the change of user has cleared it
    while (getppid() == server) {
        int fd = connect_to(server, ticks);
        if (fd >= 0)
            close(fd);
    }
}

TEST("another user who connects again and again costs little CPU, and the process still answers its own user") {
    if (geteuid() != 0)
        SKIP("needs root to become another user");
    start_governor_and_channel();
    sleep_ms(2500); // the idle trim is over
    pid_t child = start_client(connect_as_other_user);
    sleep_ms(1500);
    long before = cpu_us();
    sleep_ms(2000);
    CHECK(cpu_us() - before < 200000, "%ld us of CPU in 2 s", cpu_us() - before);
    check_own_user_is_answered();
    end_client(child);
}

static void write_to(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path, strerror(errno));
    close(fd);
}

// Enters a user namespace that maps one user: 65534 inside, 1000 outside.
static void become_unmapped(int entered, int mapped) {
    char byte;
    become(1000);
    if (unshare(CLONE_NEWUSER) != 0)
        _exit(77);
    CHECK(write(entered, "e", 1) == 1 && read(mapped, &byte, 1) == 1, "pipe: %d", errno);
    CHECK(geteuid() == 65534, "user %d", geteuid());
    start_governor_and_channel();
    unsigned long long ticks = start_ticks();
    CHECK(write(entered, &ticks, sizeof ticks) == sizeof ticks, "pipe: %d", errno);
    // The other end is closed when the program ends.
    CHECK(read(mapped, &byte, 1) == 0, "read: %d", errno);
    _exit(0);
}

TEST("in a user namespace a process of user 65534 does not answer another user that the namespace shows as 65534") {
    int entered[2], mapped[2];
    char byte, path[64];
    unsigned long long ticks;
    if (geteuid() != 0)
        SKIP("needs root to change users");
    CHECK(pipe(entered) == 0 && pipe(mapped) == 0, "pipe: %d", errno);
    pid_t process = fork();
    if (process == 0) {
        close(mapped[1]);
        become_unmapped(entered[1], mapped[0]);
    }
    close(entered[1]);
    if (read(entered[0], &byte, 1) != 1)
        SKIP("user namespaces are not allowed here");
    snprintf(path, sizeof path, "/proc/%d/uid_map", process);
    write_to(path, "65534 1000 1\n");
    CHECK(write(mapped[1], "m", 1) == 1, "pipe: %d", errno);
    CHECK(read(entered[0], &ticks, sizeof ticks) == sizeof ticks, "the process in the namespace did not get ready");
    IN_CHILD {
        close(mapped[1]);
        become(2000);
        int fd = connect_to(process, ticks);
        CHECK(fd >= 0, "cannot connect to the control channel");
        CHECK(!answers_ping(fd), "the process answers user 2000");
    }
}

// The governor waits a second for a client. If a fork waited for the governor, it would take a fifth of that.
enum { FORKS = 6, ATTEMPTS = 10 };

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
    for (int i = 0; i < FORKS; i++)
        IN_CHILD free(malloc(3 * MB));
    int is_waiting = recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    close(client);
    return is_waiting;
}

TEST("a fork does not wait for a governor that waits for a client") {
    start_governor();
    int attempt = 1;
    while (attempt <= ATTEMPTS && !governor_waits_after_forks())
        attempt++;
    CHECK(attempt <= ATTEMPTS, "%d forks took longer than the governor waits for a client", FORKS);
}
