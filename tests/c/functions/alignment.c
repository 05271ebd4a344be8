// The functions that align.
#include "tests.h"

static size_t next_power(size_t number) {
    size_t power = 1;
    while (power < number)
        power *= 2;
    return power;
}

static void use_aligned(void *block, size_t alignment, size_t size) {
    CHECK(block != NULL && (uintptr_t)block % alignment == 0, "%zu bytes for alignment %zu: %p", size, alignment, block);
    CHECK(malloc_usable_size(block) >= size, "usable %zu of %zu", malloc_usable_size(block), size);
    memset(block, 1, size);
    free(block);
}

TEST("memalign and aligned_alloc accept every size, and round alignments up to a power of two") {
    const size_t alignments[] = {0, 1, 3, 8, 16, 24, 100, 4096, 4097, 5000, 64 * KB, 2 * MB, 3 * MB, 4 * MB, 16 * MB};
    void *(*const functions[])(size_t, size_t) = {memalign, aligned_alloc};
    for (size_t f = 0; f < COUNT(functions); f++) {
        for (size_t a = 0; a < COUNT(alignments); a++)
            for (size_t i = 0; i < COUNT(SIZES); i++) {
                errno = 0;
                void *block = functions[f](alignments[a], SIZES[i]);
                // From version 2.38 on glibc's aligned_alloc refuses other alignments. The library always rounds up.
                if (block != NULL || !mode_is("bare") || errno != EINVAL)
                    use_aligned(block, next_power(alignments[a]), SIZES[i]);
            }
        errno = 0;
        CHECK(functions[f](SIZE_MAX, 1) == NULL && errno == EINVAL, "alignment SIZE_MAX: errno %d", errno);
    }
    errno = 0;
    CHECK(memalign((size_t)1 << 62, 1) == NULL && errno == ENOMEM, "memalign(1 << 62): errno %d", errno);
}

TEST("posix_memalign aligns blocks of every size to every power of two from 8 bytes to 8 MB") {
    for (size_t alignment = sizeof(void *); alignment <= 8 * MB; alignment *= 2)
        for (size_t i = 0; i < COUNT(SIZES); i++) {
            void *block = NULL;
            int error = posix_memalign(&block, alignment, SIZES[i]);
            CHECK(error == 0, "posix_memalign(%zu, %zu) = %d", alignment, SIZES[i], error);
            use_aligned(block, alignment, SIZES[i]);
        }
}

TEST("posix_memalign returns its error and keeps the pointer; it sets errno only if memory is short") {
    const size_t alignments[] = {0, 1, 2, 4, 3, 7, 12, 24, 48, 4097, SIZE_MAX};
    errno = EXDEV;
    for (size_t i = 0; i < COUNT(alignments); i++) {
        void *untouched = &untouched;
        int error = posix_memalign(&untouched, alignments[i], 100);
        CHECK(error == EINVAL, "posix_memalign(%zu) = %d", alignments[i], error);
        CHECK(untouched == &untouched, "the pointer was set to %p", untouched);
    }
    CHECK(errno == EXDEV, "a refused alignment set errno to %d", errno);
    void *block;
    for (size_t size = 100; size <= 10 * MB; size *= 10) {
        int error = posix_memalign(&block, 64, size);
        CHECK(error == 0 && errno == EXDEV, "posix_memalign(%zu) = %d, errno %d", size, error, errno);
        free(block);
    }
    // Many programs call perror(NULL) after a failure, although POSIX does not set errno.
    const size_t hopeless[][2] = {{64, PTRDIFF_MAX}, {64, SIZE_MAX}, {(size_t)1 << 62, 1}, {4096, (size_t)1 << 47}, {64, (size_t)1 << 60}};
    for (size_t i = 0; i < COUNT(hopeless); i++) {
        void *untouched = &untouched;
        errno = 0;
        int error = posix_memalign(&untouched, hopeless[i][0], hopeless[i][1]);
        CHECK(error == ENOMEM && untouched == &untouched, "%zu: %d, %p", i, error, untouched);
        CHECK(errno == ENOMEM, "%zu: errno %d", i, errno);
    }
}

TEST("valloc and pvalloc align to the page, and pvalloc rounds the size up to whole pages") {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        use_aligned(valloc(SIZES[i]), PAGE, SIZES[i]);
        use_aligned(pvalloc(SIZES[i]), PAGE, (SIZES[i] + PAGE - 1) / PAGE * PAGE);
    }
    use_aligned(pvalloc(0), PAGE, 0);
}
