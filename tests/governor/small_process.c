// a process gets the governor's thread when it grows, and not before
#include "check.h"

int main(void) {
    for (int i = 0; i < 2000; i++) {
        free(malloc(1000));
        free(malloc_touched(2 * MB, 1));
    }
    free_most(small_heap(20 * MB));
    malloc_trim(0);
    sleep_ms(300);
    CHECK(count_threads(NULL) == 1, "%d threads", count_threads(NULL));
    start_governor();
    CHECK(count_threads(NULL) == 2, "%d threads", count_threads(NULL));
}
