// a process whose main thread calls pthread_exit ends with the program's last thread, and flushes its output
#include "check.h"

static void *outlive(void *argument) {
    sleep_ms(1500);
    printf(" and the worker");
    return NULL;
}

// In a child, because the test is about the end of a process. stdio buffers the output until then.
static pid_t start(int workers, int output) {
    pid_t child = fork();
    if (child != 0)
        return child;
    dup2(output, STDOUT_FILENO);
    start_governor();
    pthread_t thread;
    printf("the main thread");
    if (workers)
        pthread_create(&thread, NULL, outlive, NULL);
    pthread_exit(NULL);
}

static void await_end(int workers, const char *expected) {
    int ends[2];
    CHECK(pipe(ends) == 0, "pipe: %d", errno);
    pid_t child = start(workers, ends[1]);
    close(ends[1]);
    int status = await_child(child);
    CHECK(status == 0, "status %#x", status);
    char seen[100] = "";
    CHECK(read(ends[0], seen, sizeof seen - 1) >= 0, "read: %d", errno);
    CHECK(strcmp(seen, expected) == 0, "the process wrote \"%s\"", seen);
    close(ends[0]);
}

int main(void) {
    setvbuf(stdout, NULL, _IOFBF, 4096);
    await_end(0, "the main thread");
    await_end(1, "the main thread and the worker");
}
