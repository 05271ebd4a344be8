// a signal handler may call exit on a stack of 8 KiB
#include "check.h"

static void end(int number) {
    exit(0);
}

static void run(void) {
    // A program that another one with the library starts writes no marker before its own first.
    int (*mark)(const char *, const char *, long) = dlsym(RTLD_DEFAULT, "flarena_mark");
    CHECK(mark == NULL || mark("begin", NULL, -1) == 0, "flarena_mark: %d", errno);
    size_t guard = 64 * KB, size = 8 * KB;
    char *low = mmap(NULL, guard + 64 * KB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(low != MAP_FAILED && mprotect(low, guard, PROT_NONE) == 0, "the stack: %d", errno);
    stack_t stack = {.ss_sp = low + guard, .ss_size = size};
    if (sigaltstack(&stack, NULL) != 0)
        SKIP("the kernel needs a larger signal stack");
    struct sigaction action = {.sa_handler = end, .sa_flags = SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    raise(SIGALRM);
}

int main(int count, char **arguments) {
    if (count == 2)
        run();
    setenv("NVFLARE_CLIENT_MEMORY_PROFILE", "1", 1);
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stderr);
        execl(arguments[0], arguments[0], "run", NULL);
        _exit(9);
    }
    int status = await_child(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("the kernel needs a larger signal stack");
    CHECK(status == 0, "status %#x", status);
}
