// Runs a command behind a seccomp filter of a service manager that kills at process_vm_readv.
//
//   behind_filter COMMAND...
#include "seccomp_filter.h"

int main(int argc, char **argv) {
    struct sock_filter filter[] = {ANSWER_CALL(process_vm_readv, SECCOMP_RET_KILL_PROCESS)};
    CHECK(argc > 1, "no command");
    setenv("INVOCATION_ID", "a service", 1);
    install_hidden_filter(filter, COUNT(filter));
    execvp(argv[1], argv + 1);
    CHECK(0, "exec: %s", strerror(errno));
}
