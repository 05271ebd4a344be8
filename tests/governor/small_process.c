// a process that holds little has no thread but its own
#include "governor.h"

int main(void) {
    void **heap = small_heap(20 * MB);
    free_most(heap);
    sleep_ms(300);
    CHECK(threads_named("flarena") == 0, "a governor");
    return 0;
}
