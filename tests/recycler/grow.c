// realloc of a large block moves its pages: the peak holds no second copy, and the contents stay
// qemu's user mode keeps resident tables of all pages
#include "check.h"

int main(void) {
    size_t size = 4 * MB;
    char *other = malloc_touched(3 * MB, 9);
    char *block = malloc_touched(size, 1);
    while (size < 400 * MB) {
        size_t next = size + size / 8 + 12345;
        block = realloc(block, next);
        CHECK(block != NULL && block[0] == 1 && block[size - 1] == 1);
        touch(block, next, 1);
        size = next;
    }
    CHECK(proc_number("status", "VmHWM") < (long)(size + 60 * MB));
    CHECK(statistic("recycler", "live_blocks") == 2 && statistic("recycler", "realloc_copied") == 0);
    for (size_t at = 0; at < size; at += 4096)
        CHECK(block[at] == 1);
    block = realloc(block, 5 * MB);
    CHECK(block[0] == 1 && block[5 * MB - 4096] == 1);
    CHECK(statistic("recycler", "live_bytes") < (long)(9 * MB));
    CHECK(other[3 * MB - 1] == 9);
    free(other);
    free(block);
}
