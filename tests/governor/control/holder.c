// No test: holds 100 MB of small blocks and prints its pid when its control channel is ready. For run.sh.
#include "check.h"

int main(void) {
    void **heap = small_heap(100 * MB);
    free_most(small_heap(20 * MB));
    await_governor();
    sleep_ms(300);
    printf("%d\n", getpid());
    fflush(stdout);
    sleep_ms(60000);
    return *heap == NULL;
}
