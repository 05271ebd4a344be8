// Prints `malloc ADDRESS` or `free ADDRESS` for each instruction of the library in a malloc of 8 MiB, with pages cached, and in
// its free. Address 0 is the start of the file.
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include "../../check.h"

static char *volatile block;

static void allocate(void) {
    block = malloc(8 * MB);
    block[0] = 1;
}

static void be_traced(void) {
    CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    for (int times = 0; times < 200; times++) {
        allocate();
        free(block);
    }
    raise(SIGSTOP);
    allocate();
    raise(SIGSTOP);
    free(block);
    raise(SIGSTOP);
}

static uintptr_t counter(pid_t child) {
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    CHECK(ptrace(PTRACE_GETREGSET, child, (void *)1L /* NT_PRSTATUS */, &all) == 0);
#ifdef __x86_64__
    return registers.rip;
#else
    return registers.pc;
#endif
}

// Steps until the child stops itself. The library has the same addresses in this process.
static void step(pid_t child, const char *name) {
    Dl_info library, here;
    CHECK(dladdr((void *)malloc, &library) != 0);
    for (int status = 0; WSTOPSIG(status) != SIGSTOP;) {
        CHECK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        uintptr_t at = counter(child);
        if (dladdr((void *)at, &here) != 0 && here.dli_fbase == library.dli_fbase)
            printf("%s %#lx\n", name, at - (uintptr_t)here.dli_fbase);
    }
}

int main(void) {
    int status;
    pid_t child = fork();
    if (child == 0)
        be_traced();
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    step(child, "malloc");
    step(child, "free");
    CHECK(kill(child, SIGKILL) == 0);
}
