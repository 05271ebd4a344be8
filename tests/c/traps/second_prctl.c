// a second PR_SET_NO_NEW_PRIVS behind a seccomp filter makes no system call but prctl
#include "seccomp_filter.h"

int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(prctl), ALLOW(write), ALLOW(exit_group), ALLOW(munmap), ALLOW(madvise), ALLOW(futex),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    install_filter(filter, COUNT(filter), 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "the second prctl: %s", strerror(errno));
}
