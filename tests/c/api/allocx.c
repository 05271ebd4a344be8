// jemalloc mode: blocks of malloc and of mallocx of every size pass through both families
#include "check.h"

static void *(*mallocx)(size_t, int), *(*rallocx)(void *, size_t, int);
static size_t (*xallocx)(void *, size_t, size_t, int), (*sallocx)(const void *, int), (*nallocx)(size_t, int);
static void (*dallocx)(void *, int), (*sdallocx)(void *, size_t, int);

int main(void) {
    if (!mode_is("jemalloc"))
        return 0;
    *(void **)&mallocx = dlsym(RTLD_DEFAULT, "mallocx");
    *(void **)&rallocx = dlsym(RTLD_DEFAULT, "rallocx");
    *(void **)&xallocx = dlsym(RTLD_DEFAULT, "xallocx");
    *(void **)&sallocx = dlsym(RTLD_DEFAULT, "sallocx");
    *(void **)&nallocx = dlsym(RTLD_DEFAULT, "nallocx");
    *(void **)&dallocx = dlsym(RTLD_DEFAULT, "dallocx");
    *(void **)&sdallocx = dlsym(RTLD_DEFAULT, "sdallocx");
    const int aligned = 12; // MALLOCX_LG_ALIGN(12)
    const int zeroed = 0x40; // MALLOCX_ZERO
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        size_t size = SIZES[i];
        void *ours = malloc(size), *theirs = mallocx(size, aligned), *zeros = mallocx(size, zeroed);
        CHECK((uintptr_t)theirs % 4096 == 0, "%p", theirs);
        CHECK(first_nonzero(zeros, size) == size, "a dirty block from MALLOCX_ZERO");
        CHECK(sallocx(ours, 0) == malloc_usable_size(ours) && sallocx(ours, 0) >= size, "sallocx of malloc(%zu): %zu", size, sallocx(ours, 0));
        CHECK(sallocx(theirs, 0) == malloc_usable_size(theirs), "sallocx of mallocx(%zu): %zu", size, sallocx(theirs, 0));
        CHECK(nallocx(size, 0) >= size, "nallocx(%zu) = %zu", size, nallocx(size, 0));
        fill(ours, size, 1);
        fill(theirs, size, 2);
        CHECK(xallocx(ours, size, 0, 0) >= size, "xallocx of malloc(%zu)", size);
        ours = rallocx(ours, size * 2, 0);
        CHECK(first_mismatch(ours, size, 1) == size, "rallocx of malloc(%zu) lost bytes", size);
        theirs = realloc(theirs, size * 2);
        CHECK(first_mismatch(theirs, size, 2) == size, "realloc of mallocx(%zu) lost bytes", size);
        dallocx(ours, 0);
        free(theirs);
        sdallocx(malloc(size), size, 0);
        dallocx(malloc(size), 0);
        free(zeros);
    }
    CHECK(rss_bytes() < (long)(200 * MB), "%ld bytes resident", rss_bytes());
}
