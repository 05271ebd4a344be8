// a forked child starts without a governor, counts its own ticks, and can get one; the parent's governor keeps running
#include "check.h"

#include <sys/wait.h>

static void child(void) {
    CHECK(count_threads("flarena") == 0, "the child has a governor at its start");
    CHECK(statistic("governor", "ticks") == 0, "the child counts its parent's governor");
    void **heap = small_heap(150 * MB);
    free_most(heap);
    await_governor();
    await_rss_below(100 * MB, 30);
    _exit(0);
}

int main(void) {
    if (mode_is("bare"))
        SKIP("without the library there is no governor");
    free_most(small_heap(100 * MB));
    await_governor();
    while (statistic("governor", "ticks") == 0)
        sleep_ms(10);
    for (int generation = 0; generation < 2; generation++) {
        pid_t pid = fork();
        if (pid == 0)
            child();
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0, "child ended with %x", status);
    }
    CHECK(count_threads("flarena") == 1, "%d governor threads", count_threads("flarena"));
    return 0;
}
