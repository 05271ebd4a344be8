// mallopt reaches glibc's heap in both modes, answers as glibc does, and changes nothing of jemalloc's
#include "check.h"

// glibc's own, which serves libraries loaded with RTLD_DEEPBIND whatever serves the program.
extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);

int main(void) {
    const int options[] = {M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_TEST};
    for (size_t i = 0; i < COUNT(options); i++) {
        int result = mallopt(options[i], 4);
        CHECK(result == 1, "mallopt(%d, 4) = %d", options[i], result);
    }
    int refused = mallopt(M_MXFAST, 1 << 20);
    CHECK(refused == 0, "mallopt(M_MXFAST, 1 << 20) = %d", refused);
    // The fill byte shows in fresh memory: proof that the call arrived.
    unsigned char *before = malloc(5000);
    CHECK(before[4000] == 0, "the byte of a fresh block is %x", before[4000]);
    int result = mallopt(M_PERTURB, 0x5a);
    unsigned char *theirs = __libc_malloc(5000), *ours = malloc(5000);
    CHECK(result == 1 && theirs[4000] == (0x5a ^ 0xff), "mallopt = %d, the byte of glibc's block is %x", result, theirs[4000]);
    unsigned char expected = mode_is("jemalloc") ? 0 : 0x5a ^ 0xff;
    CHECK(ours[4000] == expected, "the byte of a block is %x", ours[4000]);
    memset(ours, 1, 5000);
    free(before);
    free(ours);
    __libc_free(theirs);
    free(malloc(10 * MB));
}
