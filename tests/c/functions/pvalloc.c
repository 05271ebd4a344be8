// valloc and pvalloc align to the page, and pvalloc rounds the size up to whole pages
#include "check.h"

int main(void) {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        size_t rounded = (SIZES[i] + PAGE - 1) / PAGE * PAGE;
        void *block = valloc(SIZES[i]), *whole = pvalloc(SIZES[i]);
        CHECK(block != NULL && (uintptr_t)block % PAGE == 0, "valloc(%zu) = %p", SIZES[i], block);
        CHECK(whole != NULL && (uintptr_t)whole % PAGE == 0, "pvalloc(%zu) = %p", SIZES[i], whole);
        CHECK(malloc_usable_size(whole) >= rounded, "pvalloc(%zu) has %zu bytes", SIZES[i], malloc_usable_size(whole));
        memset(block, 1, SIZES[i]);
        memset(whole, 1, rounded);
        free(block);
        free(whole);
    }
    void *empty = pvalloc(0);
    CHECK(empty != NULL && (uintptr_t)empty % PAGE == 0, "pvalloc(0) = %p", empty);
    free(empty);
}
