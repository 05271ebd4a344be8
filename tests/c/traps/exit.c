// Processes that end at an inconvenient moment.
#include "tests.h"

// Starts this test again, with markers on this descriptor, and with this variable.
static pid_t start_again(int markers, const char *name, const char *value) {
    pid_t child = fork();
    if (child == 0) {
        dup2(markers, STDERR_FILENO);
        setenv("NVFLARE_CLIENT_MEMORY_PROFILE", "1", 1);
        setenv(name, value, 1);
        execl("/proc/self/exe", "again", NULL);
        _exit(9);
    }
    return child;
}

// A program that another one with the library starts writes no marker before its own first.
static void write_first_marker(void) {
    CHECK(flarena_mark == NULL || flarena_mark("begin", NULL, -1) == 0, "flarena_mark: %d", errno);
}

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
    static char *blocks[2000];
    mask_signal(SIG_BLOCK, SIGALRM);
    write_first_marker();
    pthread_t thread;
    start_threads(&thread, 1, rest);
    mask_signal(SIG_UNBLOCK, SIGALRM);
    signal(SIGALRM, end);
    struct itimerval once = {{0, 0}, {0, us}};
    setitimer(ITIMER_REAL, &once, NULL);
    for (;;)
        replace_random(blocks, largest > MB ? 50 : COUNT(blocks), 20, largest);
}

TEST("a process whose signal handler calls exit while malloc runs ends, and writes the marker exit") {
    const size_t sizes[] = {3 * KB, 60 * KB, 2 * MB}; // from small blocks to those that the recycler serves
    const char *again = getenv("ROUND");
    if (again != NULL)
        allocate(sizes[(size_t)atol(again) % COUNT(sizes)], 20000 + atol(again) * 777);
    for (int round = 0; round < 36; round++) {
        char number[24], markers[1000] = "";
        snprintf(number, sizeof number, "%d", round);
        int ends[2];
        CHECK(pipe(ends) == 0, "pipe: %d", errno);
        pid_t child = start_again(ends[1], "ROUND", number);
        close(ends[1]);
        int status = await_child(child);
        CHECK(status == 0, "status %#x in round %d", status, round);
        CHECK(read(ends[0], markers, sizeof markers - 1) >= 0, "read: %d", errno);
        CHECK(mode_is("bare") || strstr(markers, " exit: ") != NULL, "the process wrote \"%s\"", markers);
        close(ends[0]);
    }
}

static void end_on_signal_stack(void) {
    write_first_marker();
    size_t guard = 64 * KB, size = 8 * KB;
    char *low = mmap(NULL, guard + 64 * KB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(low != MAP_FAILED && mprotect(low, guard, PROT_NONE) == 0, "the stack: %d", errno);
    stack_t stack = {.ss_sp = low + guard, .ss_size = size};
    if (sigaltstack(&stack, NULL) != 0)
        _exit(77);
    struct sigaction action = {.sa_handler = end, .sa_flags = SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    raise(SIGALRM);
}

TEST("a signal handler may call exit on a stack of 8 KiB") {
    if (getenv("ON_STACK") != NULL)
        end_on_signal_stack();
    int status = await_child(start_again(open("/dev/null", O_WRONLY), "ON_STACK", "1"));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("the kernel needs a larger signal stack");
    CHECK(status == 0, "status %#x", status);
}

static void *churn(void *unused) {
    for (;;) {
        free(malloc_touched(2 * MB + 100, 1));
        free(malloc(200));
    }
    return unused;
}

TEST("if main returns while threads allocate, the process ends with its own status") {
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t threads[8];
            start_threads(threads, COUNT(threads), churn);
            usleep((useconds_t)i * 300);
            if (i % 3 == 0)
                _exit(7);
            exit(7);
        }
        int status;
        waitpid(pid, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "run %d: status %x", i, status);
    }
}
