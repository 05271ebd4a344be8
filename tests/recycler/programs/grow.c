// realloc of a large block moves its pages: it costs no second copy, and keeps the contents
#include "recycler.h"

int main(void)
{
    size_t size = 4 * MIB;
    char *other = touched(3 * MIB, 9);
    char *block = touched(size, 1);
    while (size < 400 * MIB) {
        size_t next = size + size / 8 + 12345;
        block = realloc(block, next);
        CHECK(block != NULL && block[0] == 1 && block[size - 1] == 1);
        touch(block, next, 1);
        size = next;
    }
    CHECK(status_bytes("VmHWM:") < (long long)(size + 60 * MIB));
    CHECK(recycler_number("realloc_copied") == 0);
    for (size_t at = 0; at < size; at += 4096)
        CHECK(block[at] == 1);
    block = realloc(block, 5 * MIB);
    CHECK(block[0] == 1 && block[5 * MIB - 4096] == 1);
    CHECK(recycler_number("live_bytes") < (long long)(9 * MIB));
    CHECK(other[3 * MIB - 1] == 9);
    free(other);
    free(block);
}
