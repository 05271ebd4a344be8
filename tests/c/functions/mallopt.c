// mallopt reaches glibc in glibc mode, and in jemalloc mode accepts the usual calls without effect
#include "../check.h"

int main(void) {
    const int options[] = {M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_TEST};
    for (size_t i = 0; i < COUNT(options); i++) {
        int result = mallopt(options[i], 4);
        CHECK(mode_is("jemalloc") ? result == 0 || result == 1 : result == 1, "mallopt(%d, 4) = %d", options[i], result);
    }
    // The fill byte shows in fresh memory: proof that the call arrived.
    int result = mallopt(M_PERTURB, 0x5a);
    unsigned char *block = malloc(5000);
    if (!mode_is("jemalloc"))
        CHECK(result == 1 && block[4000] == (0x5a ^ 0xff), "mallopt = %d, the byte is %x", result, block[4000]);
    memset(block, 1, 5000);
    free(block);
    free(malloc(10 * MB));
}
