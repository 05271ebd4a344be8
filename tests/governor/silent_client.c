// while the governor serves clients that send nothing, the program's descriptors stay as they are
#include "channel.h"

#define FIRST 3
#define LAST 63

static void keep_connecting(pid_t server, unsigned long long ticks) {
    int fds[8];
    for (int client = 0; client < 8; client++)
        fds[client] = connect_to(server, ticks);
    // The clients send nothing and disconnect one after the other, so that the governor closes each.
    for (int client = 0; client < 8; client++) {
        sleep_ms(400);
        close(fds[client]);
    }
}

int main(void) {
    start_governor_and_channel();
    pid_t child = start_client(keep_connecting);
    ino_t inodes[LAST + 1];
    sleep_ms(300); // the governor waits for the first
    for (int fd = FIRST; fd <= LAST; fd++)
        close(fd);
    for (int fd = FIRST; fd <= LAST; fd++) {
        struct stat stat;
        FILE *file = tmpfile();
        CHECK(file != NULL && fileno(file) == fd, "%d instead of %d", file == NULL ? -1 : fileno(file), fd);
        fstat(fd, &stat);
        inodes[fd] = stat.st_ino;
    }
    CHECK_CHILD(child);
    sleep_ms(1500);
    for (int fd = FIRST; fd <= LAST; fd++) {
        struct stat stat;
        CHECK(fstat(fd, &stat) == 0 && stat.st_ino == inodes[fd], "descriptor %d: %s", fd, strerror(errno));
    }
}
