// a process whose stderr is a full pipe ends with its last thread, although it has markers to write
#include "channel.h"

// The trim writes markers from the governor's thread.
static void trim_and_end(void) {
    free_most(small_heap(100 * MB));
    if (!mode_is("bare")) {
        await_governor();
        int client = await_channel(getpid(), start_ticks());
        if (send(client, "trim\n", 5, MSG_NOSIGNAL) != 5)
            _exit(1);
        sleep_ms(500);
    }
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    int ends[2];
    char page[4096] = "";
    if (argc > 1)
        trim_and_end();
    // This process keeps the end for reading.
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0, "pipe: %d", errno);
    while (write(ends[1], page, sizeof page) > 0)
        ;
    fcntl(ends[1], F_SETFL, 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        setenv("NVFLARE_CLIENT_MEMORY_PROFILE", "1", 1);
        execl("/proc/self/exe", argv[0], "marked", NULL);
    }
    int status = await_child(child);
    CHECK(status == 0, "status %#x", status);
}
