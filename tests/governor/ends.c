// Processes with a governor that end.
#include "channel.h"
#include "seccomp_filter.h"
#include "tests.h"

static void *outlive(void *argument) {
    sleep_ms(500);
    printf(" and the worker");
    return argument;
}

// The test is about the end of a process: this one is a child. stdio buffers the output until then.
static void await_end(int workers, const char *expected) {
    int ends[2];
    char seen[100] = "";
    CHECK(pipe(ends) == 0, "pipe: %d", errno);
    IN_CHILD {
        dup2(ends[1], STDOUT_FILENO);
        start_governor();
        pthread_t thread;
        printf("the main thread");
        start_threads(&thread, (size_t)workers, outlive);
        pthread_exit(NULL);
    }
    close(ends[1]);
    CHECK(read(ends[0], seen, sizeof seen - 1) >= 0, "read: %d", errno);
    CHECK(strcmp(seen, expected) == 0, "the process wrote \"%s\"", seen);
    close(ends[0]);
}

TEST("a process whose main thread calls pthread_exit ends with the program's last thread, and flushes its output") {
    setvbuf(stdout, NULL, _IOFBF, 4096);
    await_end(0, "the main thread");
    await_end(1, "the main thread and the worker");
}

static void end_thread(int number) {
    pthread_exit(NULL);
}

static void restrict_process(int number) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    _exit(0);
}

static void allocate(int with_governor, void (*handler)(int), long us) {
    if (with_governor) {
        free(malloc_touched(200 * MB, 1));
        await_governor();
    }
    signal(SIGALRM, handler);
    struct itimerval once = {{0, 0}, {0, us}};
    setitimer(ITIMER_REAL, &once, NULL);
    static char *blocks[200];
    for (;;)
        replace_random(blocks, COUNT(blocks), 600 * KB, MB);
}

TEST("a process ends when a signal handler ends its main thread, or restricts it and exits, while malloc runs") {
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        if (child == 0)
            allocate(round % 6 < 2, round % 2 == 0 ? end_thread : restrict_process, 5000 + round * 157);
        int status = await_child(child);
        // Without the library, too, libc may abort when it unwinds the stack of an interrupted malloc.
        int aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        CHECK(status == 0 || aborted, "status %#x in round %d", status, round);
    }
}

// The trim writes markers from the governor's thread.
static void trim_and_end(void) {
    start_governor();
    if (!mode_is("bare"))
        request_trim();
    sleep_ms(500);
    pthread_exit(NULL);
}

TEST("a process whose stderr is a full pipe ends with its last thread, although it has markers to write") {
    int ends[2];
    char page[4096] = "";
    if (getenv("NVFLARE_CLIENT_MEMORY_PROFILE") != NULL)
        trim_and_end();
    // This process keeps the end for reading.
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0, "pipe: %d", errno);
    while (write(ends[1], page, sizeof page) > 0)
        ;
    fcntl(ends[1], F_SETFL, 0);
    IN_CHILD {
        dup2(ends[1], STDERR_FILENO);
        restart_with("NVFLARE_CLIENT_MEMORY_PROFILE", "1");
    }
}

static void end_by_pthread_exit(void) {
    pthread_t thread;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    start_threads(&thread, 1, outlive);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void end_in_strict_mode(void) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_exit, 0);
}

static void end_by_filter(void) {
    struct sock_filter code[] = {ANSWER_CALL(getppid, SECCOMP_RET_KILL_THREAD)};
    struct sock_fprog filter = {COUNT(code), code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    syscall(SYS_getppid);
    _exit(7);
}

TEST("a process that restricted itself ends with its last thread") {
    void (*const ends[])(void) = {end_by_pthread_exit, end_in_strict_mode, end_by_filter};
    for (size_t i = 0; i < COUNT(ends); i++) {
        pid_t child = fork();
        if (child == 0) {
            start_governor();
            ends[i]();
        }
        int status = await_child(child);
        CHECK(status == 0 || WTERMSIG(status) == SIGSYS, "end %zu: status %#x", i, status);
    }
    start_governor();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    CHECK(count_threads("flarena") == 0, "the governor runs in a restricted process");
}
