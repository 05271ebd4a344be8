// No test: launcher close_range|unshare PROGRAM runs a program without the system call close_range, or without that and
// unshare. For run.sh.
#define SKIP_OWNER_CHECK
#include "seccomp_filter.h"

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
    install_filter(filter, COUNT(filter), 0);
    execv(argv[2], argv + 2);
    CHECK(0, "execv: %s", strerror(errno));
}
