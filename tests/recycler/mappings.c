// Mappings, holes, guard regions and registrations that a program leaves in its block.
#include "tests.h"
#include "vma_attributes.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

enum { GUARD_SEARCH_AGE_MS = 1100 }; // a free searches only blocks that lived a second for guard regions

TEST("a file or shared memory that a program mapped into its block is not part of the next block") {
    // qemu's user mode refuses the mremap by which the library detects a changed mapping
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

// No later block of this size has a guard region, in which a write crashes.
static void check_no_guard(size_t size) {
    allocate_and_free(PLACES, size);
}

TEST("a guard region that a program left in a block that lived a second does not affect the next block there") {
    const size_t sizes[] = {3 * MB / 2, 2 * MB, 4 * MB, 9 * MB + 5000};
    for (int shrunk = 0; shrunk < 2; shrunk++) {
        char *blocks[COUNT(sizes)][PLACES];
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int place = 0; place < PLACES; place++) {
                char *start;
                size_t length;
                blocks[s][place] = malloc_touched(sizes[s], 1);
                select_part(blocks[s][place], sizes[s], place, &start, &length);
                if (madvise(start, length, MADV_GUARD_INSTALL) != 0)
                    SKIP("this kernel has no guard regions (MADV_GUARD_INSTALL)");
            }
        sleep_ms(GUARD_SEARCH_AGE_MS);
        for (size_t s = 0; s < COUNT(sizes); s++) {
            malloc_trim(0); // only the blocks of this size are reused
            for (int place = 0; place < PLACES; place++) {
                if (shrunk)
                    blocks[s][place] = realloc(blocks[s][place], sizes[s] * 3 / 4);
                free(blocks[s][place]);
            }
            check_no_guard(sizes[s]);
        }
    }
    CHECK(statistic("recycler", "recycled_bytes_total") > 0, "no page was recycled");
}

TEST("after a program unmapped a part of its block, keys and guard regions of later blocks are still detected") {
    enum { SIZE = 4 * MB };
    char *cut = malloc_touched(SIZE, 1);
    munmap(cut + MB, PAGE);
    sleep_ms(GUARD_SEARCH_AGE_MS);
    free(cut);

    char *start, *keyed = malloc_touched(SIZE, 1);
    size_t length;
    select_part(keyed, SIZE, WHOLE, &start, &length);
    int refused = set_attribute(start, length, KEY) != 0;
    free(keyed);
    if (!refused)
        check_next_user(SIZE, KEY, WHOLE);

    char *guarded = malloc_touched(SIZE, 1);
    select_part(guarded, SIZE, FIRST_PAGE, &start, &length);
    refused &= madvise(start, length, MADV_GUARD_INSTALL) != 0;
    sleep_ms(GUARD_SEARCH_AGE_MS);
    free(guarded);
    if (refused)
        SKIP("this machine has neither protection keys nor guard regions");
    check_no_guard(SIZE);
}

TEST("a userfaultfd registration that a program left on its block does not block the next user") {
    struct uffdio_api api = {.api = UFFD_API};
    int fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fault < 0 || ioctl(fault, UFFDIO_API, &api) != 0)
        SKIP("this user may not create a userfaultfd");
    const size_t sizes[] = {3 * MB / 2, 3 * MB, 5 * MB + 5000, 9 * MB + 5000};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int place = 0; place < PLACES; place++)
            for (int resized = 0; resized < 3; resized++) {
                alarm(20); // a fault in a registered range waits forever, as it does without the recycler
                const size_t to[] = {sizes[s], sizes[s] * 3 / 4, sizes[s] * 2};
                char *start, *block = malloc(sizes[s]);
                size_t length;
                select_part(block, sizes[s], place, &start, &length);
                struct uffdio_register range = {{(uintptr_t)start, length}, UFFDIO_REGISTER_MODE_MISSING, 0};
                madvise(start, length, MADV_DONTNEED);
                CHECK(ioctl(fault, UFFDIO_REGISTER, &range) == 0, "register: %s", strerror(errno));
                if (resized == 1)
                    block = realloc(block, to[resized]);
                free(block);
                allocate_and_free(3, to[resized]);
            }
    CHECK(statistic("recycler", "fresh_bytes_total") > 0, "no block came from the recycler");
}

TEST("sparsely used blocks of mixed sizes take less than a third of the mappings that the process may have") {
    // qemu's user mode has too few addresses for the library's address window
    size_t allowed = max_mappings();
    if (allowed > 100000)
        SKIP("this machine allows too many mappings for this test");
    size_t count = allowed;
    char **blocks = malloc(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(3 * MB / 2);
        if (blocks[i] == NULL)
            SKIP("not enough addresses");
        blocks[i][0] = 1;
    }
    for (size_t i = 0; i < count; i += 2) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    for (size_t i = 0; i + 40 < count; i += 40) {
        blocks[i] = malloc(40 * MB);
        blocks[i][0] = 1;
    }
    size_t used = (size_t)count_mappings(NULL, SIZE_MAX);
    CHECK(used < allowed / 3, "%zu mappings of %zu", used, allowed);
    CHECK(statistic("recycler", "fresh_bytes_total") > 0, "no block came from the recycler");
}
