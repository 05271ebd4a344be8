// in a user namespace a process of user 65534 does not answer another user that the namespace shows as 65534
#include "channel.h"

static void write_to(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path, strerror(errno));
    close(fd);
}

// Enters a user namespace that maps one user: 65534 inside, 1000 outside.
static void become_unmapped(int entered, int mapped) {
    char byte;
    CHECK(setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0, "setresuid: %d", errno);
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

int main(void) {
    int entered[2], mapped[2], status;
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
    pid_t other_user = fork();
    if (other_user == 0) {
        close(mapped[1]);
        CHECK(setresgid(2000, 2000, 2000) == 0 && setresuid(2000, 2000, 2000) == 0, "setresuid: %d", errno);
        int fd = connect_to(process, ticks);
        CHECK(fd >= 0, "cannot connect to the control channel");
        _exit(answers_ping(fd) ? 2 : 0);
    }
    CHECK(waitpid(other_user, &status, 0) == other_user && status == 0, "the process answers user 2000: %#x", status);
}
