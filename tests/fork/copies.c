// in a program with one thread a child of _Fork or clone uses malloc while the governor trims the heap
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../governor/channel.h"

enum { COPIES = 16, SECONDS_OF_CHILD = 20 };

static int use_malloc(void *unused) {
    (void)unused;
    alarm(SECONDS_OF_CHILD);
    for (size_t size = 1; size < 4 * MB; size = size * 3 / 2 + 1)
        free(malloc_touched(size, 1));
    _exit(0);
}

static pid_t copy_by_clone(void) {
    static char stack[256 << 10] __attribute__((aligned(64)));
    return clone(use_malloc, stack + sizeof stack, SIGCHLD, NULL);
}

// A child that asks for one trim after another, so that the governor nearly always is in one.
static pid_t ask_for_trims(void) {
    pid_t process = getpid();
    unsigned long long ticks = start_ticks();
    pid_t child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        char reply[4096];
        int fd = connect_to(process, ticks);
        if (fd >= 0 && write(fd, "trim\n", 5) == 5)
            while (read(fd, reply, sizeof reply) > 0)
                continue;
        close(fd);
    }
}

int main(void) {
    pid_t (*copy_by_libc)(void);
    *(void **)&copy_by_libc = dlsym(RTLD_DEFAULT, "_Fork");
    // The heap keeps its size, and a trim looks at all of it.
    size_t index = 0;
    for (void **block = small_heap(80 * MB); block != NULL; index++) {
        void **next = (void **)*block;
        if (index % 3 == 0)
            free(block);
        block = next;
    }
    pid_t asks = 0;
    if (!mode_is("bare")) {
        await_governor();
        asks = ask_for_trims();
    }
    for (index = 0; index < COPIES; index++) {
        pid_t child = index % 2 == 0 || copy_by_libc == NULL ? copy_by_clone() : copy_by_libc();
        if (child == 0)
            use_malloc(NULL);
        CHECK(child > 0, "no child: %d", errno);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0, "child %zu ended with status %#x", index, status);
    }
    if (asks != 0) {
        kill(asks, SIGKILL);
        waitpid(asks, NULL, 0);
    }
    return 0;
}
