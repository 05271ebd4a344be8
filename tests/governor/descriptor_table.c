// the governor has its own descriptor table: it changes no descriptor or file lock of the program, nor of a child by raw clone
#include "channel.h"
#include <poll.h>

static int highest_descriptor(void) {
    int found = -1;
    DIR *list = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(list) && fd > found)
            found = fd;
    }
    closedir(list);
    return found;
}

static void await_end_of(int fd) {
    struct pollfd end = {.fd = fd, .events = POLLIN};
    char byte;
    CHECK(poll(&end, 1, 5000) == 1, "the pipe is still open");
    CHECK(read(fd, &byte, 1) == 0, "the pipe has data");
}

int main(void) {
    int low[2], high[2];
    CHECK(pipe(low) == 0 && pipe(high) == 0, "pipe: %d", errno);
    int far = fcntl(high[1], F_DUPFD, 300);
    close(high[1]);
    FILE *file = tmpfile();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK(fcntl(fileno(file), F_SETLK, &lock) == 0, "fcntl: %d", errno);
    int before = highest_descriptor();
    start_governor_and_channel();
    CHECK(highest_descriptor() == before, "descriptor %d, before %d", highest_descriptor(), before);
    // The governor closed its copies of the program's descriptors. A close in the program's own table would have
    // released the lock, which must still be held.
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        fcntl(fileno(file), F_GETLK, &held);
        _exit(held.l_type != F_WRLCK ? 1 : highest_descriptor() != before ? 2 : 0);
    }
    CHECK_CHILD(child);
    close(low[1]);
    close(far);
    await_end_of(low[0]);
    await_end_of(high[0]);
}
