// a process whose signal handler calls exit while malloc runs ends, and writes the marker exit
#include "check.h"

// From small blocks to those that the recycler serves.
static const size_t LARGEST[] = {3 * KB, 60 * KB, 2 * MB};

static void end(int number) {
    exit(0);
}

// glibc takes no lock in a process with one thread.
static void *rest(void *argument) {
    pause();
    return argument;
}

// Ends after some milliseconds, by the handler.
static void allocate(size_t largest, long us) {
    static void *blocks[2000];
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    // A program that another one with the library starts writes no marker before its own first.
    int (*mark)(const char *, const char *, long) = dlsym(RTLD_DEFAULT, "flarena_mark");
    CHECK(mark == NULL || mark("begin", NULL, -1) == 0, "flarena_mark: %d", errno);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, rest, NULL) == 0, "pthread_create: %d", errno);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    signal(SIGALRM, end);
    struct itimerval once = {{0, 0}, {0, us}};
    setitimer(ITIMER_REAL, &once, NULL);
    for (unsigned random = 1;; random = random * 1103515245 + 12345) {
        void **block = &blocks[(random >> 8) % (largest > MB ? 50 : COUNT(blocks))];
        free(*block);
        *block = malloc(20 + (random >> 4) % largest);
    }
}

int main(int count, char **arguments) {
    if (count == 3)
        allocate((size_t)atol(arguments[1]), atol(arguments[2]));
    setenv("NVFLARE_CLIENT_MEMORY_PROFILE", "1", 1);
    for (int round = 0; round < 36; round++) {
        char largest[24], us[24], markers[1000] = "";
        snprintf(largest, sizeof largest, "%zu", LARGEST[round % COUNT(LARGEST)]);
        snprintf(us, sizeof us, "%d", 20000 + round * 777);
        int ends[2];
        CHECK(pipe(ends) == 0, "pipe: %d", errno);
        pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            execl(arguments[0], arguments[0], largest, us, NULL);
            _exit(9);
        }
        close(ends[1]);
        int status = await_child(child);
        CHECK(status == 0, "status %#x after blocks of up to %s bytes for %s us", status, largest, us);
        CHECK(read(ends[0], markers, sizeof markers - 1) >= 0, "read: %d", errno);
        CHECK(mode_is("bare") || strstr(markers, " exit: ") != NULL, "the process wrote \"%s\"", markers);
        close(ends[0]);
    }
}
