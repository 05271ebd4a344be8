// step LIBRARY PROGRAM: runs PROGRAM with the preloaded library, steps through it between its stops, and prints `malloc ADDRESS`
// or `free ADDRESS` for each instruction in the library. Address 0 is the start of the file.
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include "../../check.h"

static unsigned long first, last;

static void find_library(pid_t child, const char *library) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)child);
    FILE *maps = fopen(path, "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (strstr(line, library) && sscanf(line, "%lx-%lx", &start, &end) == 2) {
            first = first ? first : start;
            last = end;
        }
    }
    fclose(maps);
    CHECK(first);
}

static unsigned long counter(pid_t child) {
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    CHECK(ptrace(PTRACE_GETREGSET, child, (void *)1L /* NT_PRSTATUS */, &all) == 0);
#ifdef __x86_64__
    return registers.rip;
#else
    return registers.pc;
#endif
}

// Goes on until the program stops itself.
static void run_on(pid_t child, int request, const char *name) {
    for (;;) {
        int status;
        CHECK(ptrace(request, child, NULL, NULL) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        if (WSTOPSIG(status) == SIGSTOP) {
            return;
        }
        unsigned long at = counter(child);
        if (name && at >= first && at < last) {
            printf("%s %#lx\n", name, at - first);
        }
    }
}

int main(int count, char **words) {
    CHECK(count == 3);
    pid_t child = fork();
    if (child == 0) {
        CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
        CHECK(setenv("LD_PRELOAD", words[1], 1) == 0);
        execl(words[2], words[2], (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status)); // after exec
    run_on(child, PTRACE_CONT, NULL);
    find_library(child, strrchr(words[1], '/'));
    run_on(child, PTRACE_SINGLESTEP, "malloc");
    run_on(child, PTRACE_SINGLESTEP, "free");
    CHECK(kill(child, SIGKILL) == 0);
}
