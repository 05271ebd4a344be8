// a signal handler may set limits while malloc runs in a process with a limit
#include "check.h"

static const int RESOURCES[] = {RLIMIT_CORE, RLIMIT_AS, RLIMIT_DATA};
static volatile sig_atomic_t handled;

static void set_limits(int number) {
    for (size_t i = 0; i < COUNT(RESOURCES); i++) {
        struct rlimit limit;
        getrlimit(RESOURCES[i], &limit);
        setrlimit(RESOURCES[i], &limit);
    }
    handled++;
}

// In a child, which the test can end if it hangs.
static void allocate(void) {
    struct rlimit limit = {8 * GB, 8 * GB};
    setrlimit(RLIMIT_AS, &limit);
    signal(SIGALRM, set_limits);
    struct itimerval often = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, NULL);
    static char *blocks[50];
    // On a slow machine fewer signals arrive.
    time_t end = time(NULL) + 8;
    for (unsigned random = 1; handled < 5000 && time(NULL) < end; random = random * 1103515245 + 12345) {
        char **block = &blocks[(random >> 8) % COUNT(blocks)];
        free(*block);
        *block = malloc(600 * KB + (random >> 4) % (4 * MB));
        CHECK(*block != NULL, "malloc: %s", strerror(errno));
        **block = 1;
    }
    _exit(0);
}

int main(void) {
    pid_t child = fork();
    if (child == 0)
        allocate();
    int status = await_child(child);
    CHECK(status == 0, "status %#x", status);
}
