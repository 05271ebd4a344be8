// The descriptors of a program with a governor.
#include "tests.h"
#include "channel.h"
#include <poll.h>

// Opens and closes a file again and again, with descriptor 0 free. Each file must get number 0.
static void check_lowest_descriptor_for(int seconds) {
    close(0);
    long opened = 0, others = 0;
    for (double end = clock_seconds(CLOCK_MONOTONIC) + seconds; clock_seconds(CLOCK_MONOTONIC) < end; opened++) {
        int fd = open("/", O_PATH);
        others += fd != 0;
        close(fd);
    }
    CHECK(others == 0, "%ld of %ld descriptors got another number", others, opened);
}

enum { THREADS = 1000 }; // the governor reads a file for each of them at its start

static void *wait_forever(void *unused) {
    pause();
    return unused;
}

TEST("a descriptor that the program opens while the governor starts gets the lowest free number") {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * KB);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &small, wait_forever, NULL) == 0);
    }
    char *large = malloc_touched(400 * MB, 1);
    CHECK(count_threads("flarena") == 0, "the governor started too early");
    free(large); // starts the governor
    check_lowest_descriptor_for(2);
    await_governor();
}

TEST("a descriptor that the program opens gets the lowest free number while the governor reads files near a limit") {
    restart_with("FLARENA_MEMORY_LIMIT", "64M");
    free_most(small_heap(100 * MB));
    char *live = malloc_touched(100 * MB, 1); // near the limit the governor reads files four times a second
    await_governor();
    sleep_ms(500);
    check_lowest_descriptor_for(4);
    free(live);
}

static int listener(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address.sun_family) == 0, "socket: %d", errno);
    CHECK(listen(fd, 8) == 0, "listen: %d", errno);
    return fd;
}

TEST("a program that closes all descriptors and reuses their numbers keeps its sockets, and the governor does not spin") {
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
    sleep_ms(1500);
    long long ticks = statistic("governor", "ticks") - before;
    CHECK(ticks < 50, "%lld ticks in 1.5 s", ticks);
    await_statistic("governor", "ticks", before + 1);
    // The client is still in the queue, so the governor has not accepted it.
    fcntl(first, F_SETFL, O_NONBLOCK);
    CHECK(accept(first, NULL, NULL) >= 0, "accept: %d", errno);
}

static int highest_descriptor(void) {
    pid_t all[MOST_LISTED];
    int found = -1;
    for (size_t count = list_numbers("/proc/self/fd", all, MOST_LISTED); count > 0; count--)
        if (all[count - 1] > found)
            found = all[count - 1];
    return found;
}

static void await_end_of(int fd) {
    struct pollfd end = {.fd = fd, .events = POLLIN};
    char byte;
    CHECK(poll(&end, 1, 5000) == 1, "the pipe is still open");
    CHECK(read(fd, &byte, 1) == 0, "the pipe has data");
}

TEST("the governor has its own descriptor table: it changes no descriptor or file lock of the program, nor of a child by raw clone") {
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

#define FIRST 3
#define LAST 63

static void keep_connecting(pid_t server, unsigned long long ticks) {
    int fds[8];
    for (int client = 0; client < 8; client++)
        fds[client] = connect_to(server, ticks);
    // The clients send nothing and disconnect one after the other, so that the governor closes each.
    for (int client = 0; client < 8; client++) {
        sleep_ms(250);
        close(fds[client]);
    }
}

TEST("while the governor serves clients that send nothing, the program's descriptors stay as they are") {
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
