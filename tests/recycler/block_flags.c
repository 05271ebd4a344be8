// what a program did to a block by madvise, mlock, mprotect or mbind does not reach the next user of its memory
#include "check.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WHOLE, FIRST_HALF, SECOND_HALF, FIRST_PAGE, ONE_PAGE, LAST_PAGE, ALL_BUT_FIRST_PAGE, PLACES };
enum { WIPE_ON_FORK, DONT_FORK, DONT_DUMP, MERGEABLE, NO_HUGE_PAGE, HUGE_PAGE, LOCK, READ_ONLY, NO_ACCESS, BIND, KINDS };
static const char *const NAMES[] = {"WIPEONFORK", "DONTFORK", "DONTDUMP", "MERGEABLE", "NOHUGEPAGE",
                                    "HUGEPAGE",   "mlock",    "PROT_READ", "PROT_NONE", "mbind"};
// What /proc/self/smaps calls the flags, where it shows them.
static const char *const SHOWN[] = {" wf", " dc", " dd", " mg", " nh", NULL, " lo", NULL, NULL, NULL};

static void part_of(char *block, size_t size, int place, char **start, size_t *length) {
    char *first = (char *)(((uintptr_t)block + 4095) & ~(uintptr_t)4095);
    size_t pages = (size_t)(block + size - first) / 4096;
    const size_t skipped[] = {0, 0, pages / 2, 0, pages / 3, pages - 1, 1};
    const size_t covered[] = {pages, pages / 2, pages - pages / 2, 1, 1, 1, pages - 1};
    *start = first + skipped[place] * 4096;
    *length = covered[place] * 4096;
}

static int mark_part(char *start, size_t length, int kind) {
    static const int advice[] = {MADV_WIPEONFORK, MADV_DONTFORK, MADV_DONTDUMP, MADV_MERGEABLE, MADV_NOHUGEPAGE, MADV_HUGEPAGE};
    unsigned long node = 1;
    switch (kind) {
    case LOCK:
        return mlock(start, length);
    case READ_ONLY:
        return mprotect(start, length, PROT_READ);
    case NO_ACCESS:
        return mprotect(start, length, PROT_NONE);
    case BIND: // MPOL_BIND to node 0
        return (int)syscall(SYS_mbind, start, length, 2, &node, 8 * sizeof node, 0);
    default:
        return madvise(start, length, advice[kind]);
    }
}

// The flags of every mapping that holds a byte of the block.
static void check_shown(char *block, size_t size, int kind) {
    char line[512];
    int inside = 0;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    while (smaps != NULL && fgets(line, sizeof line, smaps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from < (uintptr_t)block + size && (uintptr_t)block < to;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            CHECK(strstr(line, SHOWN[kind]) == NULL, "%s of the last user, %zu bytes: %s", NAMES[kind], size, line);
    }
    if (smaps != NULL)
        fclose(smaps);
}

static void check_next_user(size_t size, int kind, int place) {
    char *blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = malloc(size);
        stamp_pages(blocks[i], size, (unsigned)i); // dies where the memory is still protected
        // Whole units without a free neighbour: nothing tells this advice from none, and it does no harm.
        if (SHOWN[kind] != NULL && !(kind == NO_HUGE_PAGE && size % (2 * MB) == 0))
            check_shown(blocks[i], size, kind);
    }
    if (kind == WIPE_ON_FORK || kind == DONT_FORK) {
        int status;
        pid_t child = fork();
        if (child == 0)
            for (int i = 0; i < 3 || (_exit(0), 0); i++)
                if (!pages_hold(blocks[i], size, (unsigned)i))
                    _exit(1);
        waitpid(child, &status, 0);
        CHECK(status == 0, "%s at place %d of %zu bytes reached the next user: status %x", NAMES[kind], place, size, status);
    }
    for (int i = 0; i < 3; i++)
        free(blocks[i]);
}

int main(void) {
    if (mode_is("bare"))
        SKIP("a heap keeps what was done to its pages");
    const size_t sizes[] = {1 * MB + 100, 3 * MB / 2, 2 * MB, 3 * MB, 4 * MB, 9 * MB + 5000, 40 * MB};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int place = 0; place < PLACES; place++) {
                char *start, *left = malloc(sizes[s]), *block = malloc(sizes[s]), *right = malloc(sizes[s]);
                size_t length;
                stamp_pages(left, sizes[s], 1);
                stamp_pages(block, sizes[s], 2);
                stamp_pages(right, sizes[s], 3);
                part_of(block, sizes[s], place, &start, &length);
                int refused = mark_part(start, length, kind) != 0; // not every kernel knows them all
                free(block);
                if (!refused)
                    check_next_user(sizes[s], kind, place);
                CHECK(pages_hold(left, sizes[s], 1), "%s: the block before changed", NAMES[kind]);
                CHECK(pages_hold(right, sizes[s], 3), "%s: the block after changed", NAMES[kind]);
                free(left);
                free(right);
            }
    malloc_trim(0);
    CHECK(proc_number("status", "VmLck") <= 0, "%ld bytes are locked after all was freed", proc_number("status", "VmLck"));
}
