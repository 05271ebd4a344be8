// a file or shared memory that a program mapped into its block is not part of the next block
// qemu's user mode refuses the mremap by which the library detects a changed mapping
#include "vma_attributes.h"

int main(void) {
    const size_t sizes[] = {3 * MB / 2, 2 * MB, 4 * MB, 6 * MB, 9 * MB + 5000};
    size_t longest = 10 * MB;
    int file = memfd_create("foreign", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, (off_t)longest) == 0, "memfd: %s", strerror(errno));
    char *content = mmap(NULL, longest, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(content != MAP_FAILED);
    stamp_pages(content, longest, 9);
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int place = 0; place < PLACES; place++)
            for (int shared = 0; shared < 2; shared++)
                for (int grown = 0; grown < 2; grown++) {
                    char *start, *block = malloc_touched(sizes[s], 1), *others[8];
                    size_t length;
                    select_part(block, sizes[s], place, &start, &length);
                    int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE);
                    CHECK(mmap(start, length, PROT_READ | PROT_WRITE, flags, file, 0) == start, "%s", strerror(errno));
                    if (grown)
                        block = realloc(block, sizes[s] * 2);
                    free(block);
                    for (size_t i = 0; i < COUNT(others); i++)
                        others[i] = malloc_touched(sizes[s] * (1 + i % 2), (char)i);
                    for (size_t i = 0; i < COUNT(others); i++)
                        free(others[i]);
                    CHECK(pages_match(content, longest, 9), "the file changed: %zu bytes, place %d", sizes[s], place);
                    malloc_trim(0);
                }
}
