// No test: launcher close_range|unshare PROGRAM runs a program without the system call close_range, or without that and
// unshare. For run.sh.
#define SKIP_OWNER_CHECK
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define REFUSE(number, error)                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

int main(int argc, char **argv) {
    CHECK(argc == 3, "usage: launcher close_range|unshare PROGRAM");
    int both = strcmp(argv[1], "unshare") == 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_close_range, ENOSYS),
        // With the error of Docker's filter.
        REFUSE((unsigned)(both ? SYS_unshare : -1), EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT(filter), .filter = filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs: %d", errno);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("this process may not install a seccomp filter");
    execv(argv[2], argv + 2);
    CHECK(0, "execv: %s", strerror(errno));
}
