// mallopt changes glibc's heap in both modes, with glibc's return values, and never jemalloc's; M_PERTURB fills large blocks
#include "check.h"

// The malloc of glibc. In both modes it serves libraries loaded with RTLD_DEEPBIND.
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
    // M_PERTURB fills fresh memory with a byte, which shows that glibc got the call.
    unsigned char *before = malloc(5000);
    CHECK(before[4000] == 0, "the byte of a fresh block is %x", before[4000]);
    int result = mallopt(M_PERTURB, 0x5a);
    unsigned char *of_glibc = __libc_malloc(5000), *of_mode = malloc(5000);
    CHECK(result == 1 && of_glibc[4000] == (0x5a ^ 0xff), "mallopt = %d, the byte of glibc's block is %x", result, of_glibc[4000]);
    unsigned char expected = mode_is("jemalloc") ? 0 : 0x5a ^ 0xff;
    CHECK(of_mode[4000] == expected, "the byte of a block is %x", of_mode[4000]);
    unsigned char *large = malloc(20 * MB);
    CHECK(large[10 * MB] == expected, "the byte of a large block is %x", large[10 * MB]);
    free(large);
    memset(of_mode, 1, 5000);
    free(before);
    free(of_mode);
    __libc_free(of_glibc);
    free(malloc(10 * MB));
}
