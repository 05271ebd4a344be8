// realloc(p, 0) frees the block and returns NULL, as glibc does; realloc(NULL, n) allocates n bytes
#include "check.h"

int main(void) {
    const size_t sizes[] = {1, 100, 64 * KB, 40 * MB};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *block = realloc(NULL, sizes[i]);
        CHECK(block != NULL && malloc_usable_size(block) >= sizes[i], "realloc(NULL, %zu) = %p", sizes[i], (void *)block);
        memset(block, 1, sizes[i]);
        CHECK(realloc(block, 0) == NULL, "realloc(p, 0) of %zu bytes is not NULL", sizes[i]);
    }
    // If realloc(p, 0) did not free the block, the loop would hold 4 GB.
    for (int i = 0; i < 100; i++) {
        char *block = malloc(40 * MB);
        CHECK(block != NULL, "malloc after %d", i);
        memset(block, 1, 40 * MB);
        CHECK(realloc(block, 0) == NULL, "not NULL");
    }
    CHECK(rss_bytes() < (long)(300 * MB), "%ld bytes resident: realloc(p, 0) does not free", rss_bytes());
}
