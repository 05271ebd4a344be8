// Programs that call jemalloc.
#include "jemalloc.h"
#include "tests.h"

TEST("in jemalloc mode the mallocx family accepts blocks of malloc, and the malloc family blocks of mallocx") {
    if (!mode_is("jemalloc"))
        return;
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

TEST("muzzy pages of jemalloc, which the kernel has not taken yet, count as free bytes in mallinfo2") {
    if (!mode_is("jemalloc"))
        return;
    char *blocks[100];
    ssize_t at_once = 0, never = -1;
    unsigned arena;
    size_t length = sizeof arena;
    char name[64];
    CHECK(mallctl("thread.arena", &arena, &length, NULL, 0) == 0);
    snprintf(name, sizeof name, "arena.%u.muzzy_decay_ms", arena);
    CHECK(mallctl(name, NULL, NULL, &never, sizeof never) == 0);
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = malloc_touched(512 * KB, 1);
    size_t free_before = mallinfo2().fordblks;
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
    snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", arena);
    CHECK(mallctl(name, NULL, NULL, &at_once, sizeof at_once) == 0);
    size_t more = mallinfo2().fordblks - free_before;
    CHECK(more > 45 * MB && more < 60 * MB, "%zu bytes more are free of 50 MB", more);
}
