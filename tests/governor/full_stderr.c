// a process whose stderr is a full pipe ends with its last thread, although it has markers to write
#include "channel.h"

#include <pthread.h>

// The trim writes markers from the governor's thread.
static void end_with_stderr(int pipe) {
    dup2(pipe, STDERR_FILENO);
    free_most(small_heap(100 * MB));
    if (!mode_is("bare")) {
        await_governor();
        int client = connect_to(getpid(), start_ticks());
        if (client < 0 || send(client, "trim\n", 5, MSG_NOSIGNAL) != 5)
            _exit(1);
        sleep_ms(500);
    }
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    if (argc == 1 && !mode_is("bare")) {
        setenv("NVFLARE_CLIENT_MEMORY_PROFILE", "1", 1);
        execl("/proc/self/exe", argv[0], "marked", NULL);
    }
    // This process keeps the end for reading.
    int ends[2];
    char page[4096] = "";
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0, "pipe: %d", errno);
    while (write(ends[1], page, sizeof page) > 0)
        ;
    fcntl(ends[1], F_SETFL, 0);
    pid_t child = fork();
    if (child == 0)
        end_with_stderr(ends[1]);
    int status = await_child(child);
    CHECK(status == 0, "status %#x", status);
    return 0;
}
