// No test: holds 100 MB of small blocks and prints its pid when its control channel is ready. For run.sh.
#include "../channel.h"

int main(void) {
    void **heap = small_heap(100 * MB);
    free_most(small_heap(20 * MB));
    close(await_channel(getpid(), start_ticks()));
    printf("%d\n", getpid());
    fflush(stdout);
    sleep_ms(600000); // run.sh ends it
    return *heap == NULL;
}
