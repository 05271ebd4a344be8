// valloc aligns to the page
#include "check.h"

int main(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        void *block = valloc(SIZES[i]);
        CHECK(block != NULL && (uintptr_t)block % page == 0, "valloc(%zu) = %p", SIZES[i], block);
        memset(block, 1, SIZES[i]);
        free(block);
    }
}
