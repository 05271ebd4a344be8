// in a program with one thread a child of _Fork or clone uses malloc while the governor trims the heap
#include "../governor/channel.h"

enum { COPIES = 16, SECONDS_OF_CHILD = 20 };

static int use_malloc(void *unused) {
    alarm(SECONDS_OF_CHILD);
    for (size_t size = 1; size < 4 * MB; size = size * 3 / 2 + 1)
        free(malloc_touched(size, 1));
    _exit(0);
}

static pid_t copy_by_clone(void) {
    static char stack[256 << 10] __attribute__((aligned(64)));
    return clone(use_malloc, stack + sizeof stack, SIGCHLD, NULL);
}

// One trim after another, so that the governor nearly always is in one.
static void ask_for_trims(pid_t server, unsigned long long ticks) {
    for (;;) {
        char reply[4096];
        int fd = connect_to(server, ticks);
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
        asks = start_client(ask_for_trims);
    }
    for (index = 0; index < COPIES; index++) {
        pid_t child = index % 2 == 0 || copy_by_libc == NULL ? copy_by_clone() : copy_by_libc();
        if (child == 0)
            use_malloc(NULL);
        CHECK(child > 0, "no child: %d", errno);
        CHECK_CHILD(child);
    }
    if (asks != 0) {
        kill(asks, SIGKILL);
        waitpid(asks, NULL, 0);
    }
}
