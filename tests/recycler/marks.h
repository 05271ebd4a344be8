// What a program may do to the pages of its block, and the look whether it reached the next user.
#pragma once

#include "check.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum { WHOLE, FIRST_HALF, SECOND_HALF, FIRST_PAGE, ONE_PAGE, LAST_PAGE, ALL_BUT_FIRST_PAGE, PLACES };
enum { WIPE_ON_FORK, DONT_FORK, DONT_DUMP, MERGEABLE, NO_HUGE_PAGE, HUGE_PAGE, LOCK, READ_ONLY, NO_ACCESS, BIND, RANDOM, KEY, KINDS };
static const char *const NAMES[] = {"WIPEONFORK", "DONTFORK", "DONTDUMP",  "MERGEABLE", "NOHUGEPAGE", "HUGEPAGE",
                                    "mlock",      "PROT_READ", "PROT_NONE", "mbind",     "RANDOM",    "a protection key"};
// What /proc/self/smaps calls the flags, where it shows them.
static const char *const SHOWN[] = {" wf", " dc", " dd", " mg", " nh", NULL, " lo", NULL, NULL, NULL, " rr", NULL};

static inline void part_of(char *block, size_t size, int place, char **start, size_t *length) {
    char *first = (char *)(((uintptr_t)block + PAGE - 1) & ~(PAGE - 1));
    size_t pages = (size_t)(block + size - first) / PAGE;
    const size_t skipped[] = {0, 0, pages / 2, 0, pages / 3, pages - 1, 1};
    const size_t covered[] = {pages, pages / 2, pages - pages / 2, 1, 1, 1, pages - 1};
    *start = first + skipped[place] * PAGE;
    *length = covered[place] * PAGE;
}

// A protection key, where the processor has them; else -1. Memory with it can be used until `forbid_key`.
static inline int key(void) {
    static int known = -2;
    if (known == -2)
        known = pkey_alloc(0, 0);
    return known;
}

static inline void forbid_key(int rights) {
    if (key() > 0)
        pkey_set(key(), (unsigned)rights);
}

static inline int mark_part(char *start, size_t length, int kind) {
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
    case RANDOM:
        return madvise(start, length, MADV_RANDOM);
    case KEY:
        return key() < 0 ? -1 : pkey_mprotect(start, length, PROT_READ | PROT_WRITE, key());
    default:
        return madvise(start, length, advice[kind]);
    }
}

// The flags of every mapping that holds a byte of the block: 1 where each has this one, 0 where none, else -1.
static inline int flag_shown(const char *block, size_t size, const char *flag) {
    char line[512];
    int inside = 0, with = 0, without = 0;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    while (smaps != NULL && fgets(line, sizeof line, smaps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from < (uintptr_t)block + size && (uintptr_t)block < to;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            *(strstr(line, flag) != NULL ? &with : &without) += 1;
    }
    if (smaps != NULL)
        fclose(smaps);
    return with > 0 && without > 0 ? -1 : with > 0;
}

// The system leaves huge pages to those who ask, and has none below 2 MiB that the library would ask for.
static inline int is_left_to_the_program(void) {
    char path[128], word[64];
    for (int kb = 8; kb <= 1024; kb *= 2) { // 8: the switch above all sizes
        snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/hugepages-%dkB/enabled", kb);
        FILE *file = fopen(kb == 8 ? "/sys/kernel/mm/transparent_hugepage/enabled" : path, "re");
        int on_request = file != NULL && fgets(word, sizeof word, file) != NULL && strstr(word, "[never]") == NULL;
        int is_madvise = on_request && strstr(word, "[madvise]") != NULL;
        if (file != NULL)
            fclose(file);
        if (kb == 8 ? !is_madvise : on_request)
            return 0;
    }
    return 1;
}

// Blocks of this size, of which one has the memory of a marked one: they hold what is written, also in a child.
static inline void check_next_user(size_t size, int kind, int place) {
    char *blocks[3];
    forbid_key(PKEY_DISABLE_ACCESS); // to write where the last user's key is left is deadly
    for (int i = 0; i < 3; i++) {
        blocks[i] = malloc(size);
        stamp_pages(blocks[i], size, (unsigned)i); // dies where the memory is still protected
        // Whole units without a free neighbour: nothing tells this advice from none, and it does no harm.
        if (SHOWN[kind] != NULL && !(kind == NO_HUGE_PAGE && size % (2 * MB) == 0))
            CHECK(flag_shown(blocks[i], size, SHOWN[kind]) == 0, "%s of the last user, at place %d, %zu bytes", NAMES[kind],
                  place, size);
    }
    if (kind == WIPE_ON_FORK || kind == DONT_FORK) {
        int status;
        pid_t child = fork();
        if (child == 0)
            for (int i = 0; i < 3 || (_exit(0), 0); i++)
                if (!pages_match(blocks[i], size, (unsigned)i))
                    _exit(1);
        waitpid(child, &status, 0);
        CHECK(status == 0, "%s at place %d of %zu bytes reached the next user: status %x", NAMES[kind], place, size, status);
    }
    for (int i = 0; i < 3; i++)
        free(blocks[i]);
    forbid_key(0);
}

// As above, of a guard: whoever writes to it dies.
static inline void check_no_guard(size_t size) {
    char *blocks[3];
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = malloc_touched(size, 2);
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
}

static inline void check_nothing_locked(void) {
    malloc_trim(0);
    CHECK(proc_number("status", "VmLck") <= 0, "%ld bytes are locked after all was freed", proc_number("status", "VmLck"));
}
