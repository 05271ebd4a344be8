// with FLARENA_GOVERNOR=off a large process has no extra thread, and can enter a user namespace
#include "check.h"

static int enter_user_namespace(void) {
    return unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}

int main(void) {
    // First without any memory: does this system allow it at all?
    pid_t child = fork();
    if (child == 0)
        _exit(enter_user_namespace());
    int status = 0;
    waitpid(child, &status, 0);
    free_most(small_heap(100 * MB));
    for (int round = 0; round < 100; round++)
        free(malloc_touched(20 * MB, 1));
    sleep_ms(300);
    CHECK(count_threads(NULL) == 1, "%d threads", count_threads(NULL));
    CHECK(!statistic("governor", "running"), "the statistics report a running governor");
    if (status != 0)
        SKIP("user namespaces are not allowed here");
    int error = enter_user_namespace();
    CHECK(error == 0, "unshare: %s", strerror(error));
}
