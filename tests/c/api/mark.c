// Markers.
#include "tests.h"

enum { CALLS = 50000 };

TEST("with markers off, flarena_mark returns 0, prints nothing and takes less than a microsecond") {
    double least_us = 1000;
    for (int round = 0; round < 20; round++) {
        double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < CALLS; i++)
            CHECK(flarena_mark("stage", "site", i) == 0, "not 0: %s", strerror(errno));
        double us = (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start) * 1e6 / CALLS;
        least_us = us < least_us ? us : least_us;
    }
    CHECK(least_us < 1, "a call took %f us", least_us);
    CHECK(flarena_mark(NULL, NULL, -1) == 0, "NULL: %s", strerror(errno));
}

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

TEST("markers go to a log that replaces stderr, and to no other file or socket that gets a closed stderr's number") {
    if (getenv("NVFLARE_CLIENT_MEMORY_PROFILE") == NULL) {
        dup2(STDERR_FILENO, MESSAGES);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO); // for the markers that are no part of the test
    }
    restart_with("NVFLARE_CLIENT_MEMORY_PROFILE", "1");
    int nowhere = fcntl(STDERR_FILENO, F_DUPFD, 10), pair[2];
    CHECK(mkstemp(path) > 2 && nowhere >= 10, "%s", strerror(errno));
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
    if (flarena_mark("send", "site-1", 3) != 0) // the stderr of the start is back
        exit(3);
}

static void *work(void *unused) {
    static char json[1 << 16];
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        char *block = malloc(SIZES[i]), *zeroed = calloc(1, SIZES[i]);
        block[0] = zeroed[0] = 1;
        block = realloc(block, SIZES[i] * 2);
        free(block);
        free(zeroed);
    }
    CHECK(flarena_mark("stage", "site-1", 1) == 0, "no marker");
    flarena_trim();
    CHECK(flarena_stats_json(json, sizeof json) > 0, "no statistics");
    return unused;
}

TEST("in a thread with the smallest stack malloc serves every size, and flarena_trim, _mark and _stats_json work") {
    setenv("FLARENA_MARKER_FILE", "/dev/null", 1);
    // Markers go there, too.
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    restart_with("NVFLARE_CLIENT_MEMORY_PROFILE", "1");
    pthread_attr_t small;
    pthread_attr_init(&small);
    CHECK(pthread_attr_setstacksize(&small, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &small, work, NULL) == 0, "no thread");
        pthread_join(thread, NULL);
    }
}
