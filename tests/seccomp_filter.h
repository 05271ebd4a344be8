// A seccomp filter that kills the process at each system call but those of glibc's malloc, write, exit, and the clock
// (which needs a system call where the vDSO cannot serve it).
#pragma once

#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// The instructions of a filter that answers one system call with ACTION and allows all others.
#define ANSWER_CALL(name, action)                                                                                      \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                                             \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),                      \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// By raw system calls, which the library cannot see. When it sees a filter being installed it stops making calls that
// the filter could refuse, and these tests need the refusals.
static inline void install_hidden_filter(struct sock_filter *filter, unsigned short count) {
    struct sock_fprog program = {count, filter};
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        SKIP("this process may not install a seccomp filter");
}

static inline void install_filter(struct sock_filter *filter, unsigned short count, unsigned flags) {
    struct sock_fprog program = {count, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0)
        SKIP("this process may not install a seccomp filter");
}

static inline void install_malloc_filter(unsigned flags) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(madvise), ALLOW(futex),
        ALLOW(write), ALLOW(exit_group), ALLOW(rt_sigreturn), ALLOW(clock_gettime), ALLOW(gettimeofday),
#ifdef SYS_time
        ALLOW(time),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    // The first malloc of glibc calls getrandom, which the filter refuses.
    free(malloc(1));
    install_filter(filter, COUNT(filter), flags);
}

// Blocks of this size and larger ones: every function of the malloc family, and attributes that the recycler resets.
static inline void use_malloc_family(size_t bytes) {
    char *blocks[24];
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = malloc_touched(bytes + i * 300 * KB, (char)i);
    madvise(blocks[3], PAGE, MADV_DONTFORK);
    madvise(blocks[9], bytes & ~(PAGE - 1), MADV_HUGEPAGE);
    for (size_t i = 0; i < COUNT(blocks); i += 2)
        blocks[i] = realloc(blocks[i], i % 4 == 0 ? bytes / 2 : bytes * 2);
    for (size_t i = 0; i < COUNT(blocks); i++) {
        CHECK(blocks[i] != NULL && blocks[i][0] == (char)i, "block %zu", i);
        free(blocks[i]);
    }
    char *zeroed = calloc(3, bytes);
    CHECK(zeroed != NULL && first_nonzero(zeroed, 3 * bytes) == 3 * bytes, "calloc");
    free(zeroed);
    void *aligned = NULL;
    CHECK(posix_memalign(&aligned, 4 * MB, bytes) == 0, "posix_memalign");
    CHECK(malloc_usable_size(aligned) >= bytes, "malloc_usable_size");
    free(aligned);
    malloc_trim(0);
}
