// in jemalloc mode, blocks of malloc can be passed to the mallocx family, and blocks of mallocx to the malloc family
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
        void *plain = malloc(size), *extended = mallocx(size, aligned), *zeros = mallocx(size, zeroed);
        CHECK((uintptr_t)extended % 4096 == 0, "%p", extended);
        CHECK(first_nonzero(zeros, size) == size, "MALLOCX_ZERO returned a block that is not zero");
        CHECK(sallocx(plain, 0) == malloc_usable_size(plain) && sallocx(plain, 0) >= size, "sallocx of malloc(%zu): %zu", size, sallocx(plain, 0));
        CHECK(sallocx(extended, 0) == malloc_usable_size(extended), "sallocx of mallocx(%zu): %zu", size, sallocx(extended, 0));
        CHECK(nallocx(size, 0) >= size, "nallocx(%zu) = %zu", size, nallocx(size, 0));
        fill(plain, size, 1);
        fill(extended, size, 2);
        CHECK(xallocx(plain, size, 0, 0) >= size, "xallocx of malloc(%zu)", size);
        plain = rallocx(plain, size * 2, 0);
        CHECK(first_mismatch(plain, size, 1) == size, "rallocx of malloc(%zu) lost bytes", size);
        extended = realloc(extended, size * 2);
        CHECK(first_mismatch(extended, size, 2) == size, "realloc of mallocx(%zu) lost bytes", size);
        dallocx(plain, 0);
        free(extended);
        sdallocx(malloc(size), size, 0);
        dallocx(malloc(size), 0);
        free(zeros);
    }
    CHECK(rss_bytes() < (long)(200 * MB), "%ld bytes resident", rss_bytes());
}
