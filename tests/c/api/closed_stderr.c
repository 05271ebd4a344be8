// markers go to a log that replaces stderr, and to no other file or socket that gets the number of a closed stderr
#include "check.h"
#include "flarena.h"

enum { MESSAGES = 50 };

static char path[] = "/tmp/flarena-closed-stderr.XXXXXX";

// Opens the file with these flags as descriptor 2, and returns its length after a marker.
static off_t length_after_mark(int flags) {
    close(STDERR_FILENO);
    int file = open(path, flags | O_CREAT | O_TRUNC, 0600);
    if (file != STDERR_FILENO)
        exit(1);
    int result = flarena_mark("send", "site-1", 3);
    off_t length = lseek(file, 0, SEEK_END);
    if ((result == 0) != (length > 0))
        exit(2);
    return length;
}

int main(int count, char **arguments) {
    if (getenv("NVFLARE_CLIENT_MEMORY_PROFILE") == NULL) {
        setenv("NVFLARE_CLIENT_MEMORY_PROFILE", "1", 1);
        dup2(STDERR_FILENO, MESSAGES);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO); // for the markers that are no part of the test
        execv("/proc/self/exe", arguments);
    }
    int nowhere = fcntl(STDERR_FILENO, F_DUPFD, 10), pair[2];
    CHECK(mkstemp(path) > 2 && nowhere >= 10 && count == 1, "%s", strerror(errno));
    off_t data = length_after_mark(O_RDWR), output = length_after_mark(O_WRONLY), log = length_after_mark(O_WRONLY | O_APPEND);
    close(STDERR_FILENO);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int socket_result = flarena_mark("send", "site-1", 3);
    dup2(MESSAGES, STDERR_FILENO);
    unlink(path);
    CHECK(pair[0] == 2, "%d", pair[0]);
    CHECK(data == 0 && output == 0, "%ld and %ld bytes in the program's files", (long)data, (long)output);
    CHECK(log > 0, "no marker in the log");
    CHECK(socket_result == -1, "a marker was written to a socket");
    dup2(nowhere, STDERR_FILENO);
    return flarena_mark("send", "site-1", 3) == 0 ? 0 : 3; // the stderr of the start is back
}
