// cfree frees a block of malloc
#include "check.h"

int main(void) {
    void (*cfree_function)(void *);
    *(void **)&cfree_function = dlsym(RTLD_DEFAULT, "cfree");
    if (cfree_function == NULL && mode_is("bare"))
        SKIP("this glibc has no cfree");
    CHECK(cfree_function != NULL, "no cfree");
    cfree_function(NULL);
    for (int i = 0; i < 200; i++) {
        char *block = malloc(20 * MB);
        memset(block, 1, 20 * MB);
        cfree_function(block);
        cfree_function(malloc(100));
    }
    CHECK(rss_bytes() < (long)(200 * MB), "%ld bytes resident: cfree does not free", rss_bytes());
}
