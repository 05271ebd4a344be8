// behind a seccomp filter that kills at other calls, the malloc family makes only the system calls of glibc's malloc
#include "seccomp_filter.h"

static void exercise(size_t bytes) {
    char *blocks[24];
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = malloc_touched(bytes + i * 300 * KB, (char)i);
    // The recycler must reset these attributes before it reuses the pages.
    madvise(blocks[3], PAGE, MADV_DONTFORK);
    madvise(blocks[9], bytes & ~(PAGE - 1), MADV_HUGEPAGE);
    for (size_t i = 0; i < COUNT(blocks); i += 2)
        blocks[i] = realloc(blocks[i], i % 4 == 0 ? bytes / 2 : bytes * 2);
    for (size_t i = 0; i < COUNT(blocks); i++) {
        CHECK(blocks[i] != NULL && blocks[i][0] == (char)i, "block %zu", i);
        free(blocks[i]);
    }
    char *zeroed = calloc(3, bytes);
    CHECK(zeroed != NULL && first_nonzero(zeroed, 3 * bytes) == 3 * bytes, "calloc");
    free(zeroed);
    void *aligned = NULL;
    CHECK(posix_memalign(&aligned, 4 * MB, bytes) == 0, "posix_memalign");
    CHECK(malloc_usable_size(aligned) >= bytes, "malloc_usable_size");
    free(aligned);
    malloc_trim(0);
}

int main(void) {
    install_malloc_filter(0);
    exercise(100);
    exercise(70 * KB);
    exercise(3 * MB);
    exercise(3 * MB);
    // Enough small blocks to start a governor.
    free_most(small_heap(150 * MB));
    exercise(8 * MB);
}
