// while the governor serves clients that send nothing, the program's descriptors stay as they are
#include "channel.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FIRST 3
#define LAST 63

static pid_t keep_connecting(void) {
    pid_t self = getpid();
    unsigned long long ticks = start_ticks();
    pid_t child = fork();
    if (child != 0)
        return child;
    int fds[8];
    for (int client = 0; client < 8; client++)
        fds[client] = connect_to(self, ticks);
    // The clients send nothing and disconnect one after the other, so that the governor closes each.
    for (int client = 0; client < 8; client++) {
        sleep_ms(400);
        close(fds[client]);
    }
    _exit(0);
}

int main(void) {
    free_most(small_heap(100 * MB));
    await_started_governor();
    pid_t child = keep_connecting();
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
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child: %#x", status);
    sleep_ms(1500);
    for (int fd = FIRST; fd <= LAST; fd++) {
        struct stat stat;
        CHECK(fstat(fd, &stat) == 0 && stat.st_ino == inodes[fd], "descriptor %d: %s", fd, strerror(errno));
    }
    return 0;
}
