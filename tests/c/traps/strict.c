// in seccomp's strict mode a program allocates small blocks from free memory, and frees small and large ones
#include "check.h"
#include <linux/seccomp.h>

// A second of small blocks: longer than the pauses between two returns of memory.
enum { ROUNDS = 20000000 };

static void replace_small_blocks(unsigned rounds) {
    static char *blocks[256];
    for (unsigned random = 1, round = 0; round < rounds; round++, random = random * 1103515245 + 12345) {
        char **block = &blocks[(random >> 8) % COUNT(blocks)];
        free(*block);
        *block = malloc_touched((random >> 16) % 1000 + 1, 1);
    }
}

static void child(void) {
    static char *large[8];
    // glibc gives blocks of up to this size no mapping of their own from now on.
    free(malloc_touched(24 * MB, 1));
    for (size_t index = 0; index < COUNT(large); index++)
        large[index] = malloc_touched(2 * MB, 1);
    replace_small_blocks(100000);
    // Cached pages become old enough to be returned.
    free(large[0]);
    sleep_ms(500);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        _exit(77);
    for (size_t index = 1; index < COUNT(large); index++)
        free(large[index]);
    replace_small_blocks(ROUNDS);
    syscall(SYS_exit, 0);
}

int main(void) {
    pid_t pid = fork();
    if (pid == 0)
        child();
    int status;
    CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %d", errno);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("this kernel has no strict seccomp mode");
    CHECK(status == 0, "the child ended with status %#x", status);
}
