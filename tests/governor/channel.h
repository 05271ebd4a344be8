// Connects to the control channel of a process, for the programs of this suite.
#pragma once

#include "check.h"

// The start time of this process in clock ticks: field 22 of /proc/self/stat.
static inline unsigned long long start_ticks(void) {
    char stat[1024] = "";
    unsigned long long ticks = 0;
    FILE *file = NULL;
    // The suite faults makes one call in three fail.
    for (int attempt = 0; attempt < 50 && file == NULL; attempt++)
        file = fopen("/proc/self/stat", "re");
    CHECK(file != NULL && fgets(stat, sizeof stat, file) != NULL, "cannot read /proc/self/stat");
    fclose(file);
    sscanf(strrchr(stat, ')') + 2,
           "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks);
    return ticks;
}

// A connection to the control channel of the process, or -1.
static inline int connect_to(pid_t pid, unsigned long long ticks) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "flarena/%d/%llu", pid, ticks);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (connect(fd, (struct sockaddr *)&address, size) == 0)
        return fd;
    close(fd);
    return -1;
}

// A connection to the control channel of a process that opens it within 30 seconds. The governor's thread has its name
// before that, and opens the channel as the last part of its start.
static inline int await_channel(pid_t pid, unsigned long long ticks) {
    int fd = -1;
    for (int hundredth = 0; hundredth < 3000 && (fd = connect_to(pid, ticks)) < 0; hundredth++)
        sleep_ms(10);
    CHECK(fd >= 0, "process %d opens no control channel", pid);
    return fd;
}

// Grows until the governor of this process has ended its start.
static inline void start_governor_and_channel(void) {
    start_governor();
    close(await_channel(getpid(), start_ticks()));
}

// Asks this process for a trim, which its governor's thread makes. Returns the connection.
static inline int request_trim(void) {
    int client = await_channel(getpid(), start_ticks());
    CHECK(send(client, "trim\n", 5, MSG_NOSIGNAL) == 5, "send: %s", strerror(errno));
    return client;
}

// Waits until another thread has set the flag, for 10 s at most.
static inline int await_flag(const volatile int *flag) {
    for (int ms = 0; ms < 10000 && !__atomic_load_n(flag, __ATOMIC_SEQ_CST); ms++)
        sleep_ms(1);
    return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

// A child that calls the function with this process's number and start time. It does not outlive this process.
static inline pid_t start_client(void (*act)(pid_t, unsigned long long)) {
    pid_t server = getpid();
    unsigned long long ticks = start_ticks();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        act(server, ticks);
        _exit(0);
    }
    return child;
}

static inline void end_client(pid_t client) {
    CHECK(client > 0, "no client was started");
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
}

// Whether the process answers a ping over this connection within 30 seconds.
static inline int answers_ping(int fd) {
    char reply[256];
    struct timeval timeout = {.tv_sec = 30};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return send(fd, "ping\n", 5, MSG_NOSIGNAL) == 5 && recv(fd, reply, sizeof reply, 0) > 0;
}
