// pvalloc aligns to the page and rounds the size up to whole pages
#include "check.h"

int main(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        size_t rounded = (SIZES[i] + page - 1) / page * page;
        void *block = pvalloc(SIZES[i]);
        CHECK(block != NULL && (uintptr_t)block % page == 0, "pvalloc(%zu) = %p", SIZES[i], block);
        CHECK(malloc_usable_size(block) >= rounded, "pvalloc(%zu) has %zu bytes", SIZES[i], malloc_usable_size(block));
        memset(block, 1, rounded);
        free(block);
    }
    void *empty = pvalloc(0);
    CHECK(empty != NULL && (uintptr_t)empty % page == 0, "pvalloc(0) = %p", empty);
    free(empty);
}
