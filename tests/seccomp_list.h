// A seccomp list that kills the process at every call but those that glibc's malloc makes, and a write, an exit, and
// what a clock costs where it is no mere read.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// By raw calls: the library takes a list that it sees for a sandbox, and then asks for nothing of the kind.
static inline void set_unseen_list(struct sock_filter *list, unsigned short count) {
    struct sock_fprog program = {count, list};
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        SKIP("no seccomp list may be set here");
}

static inline void enter_seccomp_list(unsigned flags) {
    struct sock_filter list[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise), ALLOW(futex),
        ALLOW(write), ALLOW(exit_group), ALLOW(rt_sigreturn), ALLOW(clock_gettime), ALLOW(gettimeofday),
#ifdef SYS_time
        ALLOW(time),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    // glibc's first malloc asks for random bytes, once.
    free(malloc(1));
    struct sock_fprog program = {COUNT(list), list};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0)
        SKIP("no seccomp list may be set here");
}
