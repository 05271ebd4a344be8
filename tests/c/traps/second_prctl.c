// a second PR_SET_NO_NEW_PRIVS behind a seccomp filter makes no system call but prctl
#include "check.h"
#include "seccomp_filter.h"

int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(prctl), ALLOW(write), ALLOW(exit_group), ALLOW(munmap), ALLOW(madvise), ALLOW(futex),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {COUNT(filter), filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "the first prctl: %s", strerror(errno));
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        SKIP("this process may not install a seccomp filter");
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "the second prctl: %s", strerror(errno));
}
