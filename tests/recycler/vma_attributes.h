// Attributes that a program may set on a part of its block, and checks that the next block there has none.
#pragma once

#include "check.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum { WHOLE, FIRST_HALF, SECOND_HALF, FIRST_PAGE, ONE_PAGE, LAST_PAGE, ALL_BUT_FIRST_PAGE, PLACES };
enum { WIPE_ON_FORK, DONT_FORK, DONT_DUMP, MERGEABLE, NO_HUGE_PAGE, HUGE_PAGE, LOCK, READ_ONLY, NO_ACCESS, BIND, RANDOM, KEY, KINDS };
static const char *const KIND_NAMES[] = {"WIPEONFORK", "DONTFORK", "DONTDUMP",  "MERGEABLE", "NOHUGEPAGE", "HUGEPAGE",
                                    "mlock",      "PROT_READ", "PROT_NONE", "mbind",     "RANDOM",    "a protection key"};
// The name of the flag in the VmFlags of /proc/self/smaps, or NULL if it has none.
static const char *const SMAPS_FLAGS[] = {" wf", " dc", " dd", " mg", " nh", NULL, " lo", NULL, NULL, NULL, " rr", NULL};

static inline void select_part(char *block, size_t size, int place, char **start, size_t *length) {
    char *first = (char *)(((uintptr_t)block + PAGE - 1) & ~(PAGE - 1));
    size_t pages = (size_t)(block + size - first) / PAGE;
    const size_t skipped[] = {0, 0, pages / 2, 0, pages / 3, pages - 1, 1};
    const size_t covered[] = {pages, pages / 2, pages - pages / 2, 1, 1, 1, pages - 1};
    *start = first + skipped[place] * PAGE;
    *length = covered[place] * PAGE;
}

// A protection key, or -1 if the processor has none. Memory with it stays accessible until set_key_rights.
static inline int protection_key(void) {
    static int allocated = -2;
    if (allocated == -2)
        allocated = pkey_alloc(0, 0);
    return allocated;
}

static inline void set_key_rights(int rights) {
    if (protection_key() > 0)
        pkey_set(protection_key(), (unsigned)rights);
}

static inline int set_attribute(char *start, size_t length, int kind) {
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
        return protection_key() < 0 ? -1 : pkey_mprotect(start, length, PROT_READ | PROT_WRITE, protection_key());
    default:
        return madvise(start, length, advice[kind]);
    }
}

// Whether the mappings that overlap the block have this flag: 1 if all have it, 0 if none has it, else -1.
static inline int vma_flag(const char *block, size_t size, const char *flag) {
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

// The number of mappings that overlap the block.
static inline int count_mappings(const char *block, size_t size) {
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            count += from < (uintptr_t)block + size && (uintptr_t)block < to;
    }
    if (maps != NULL)
        fclose(maps);
    return count;
}

// The system provides pages of 2 MiB on request, and none of the smaller sizes that the library would request.
static inline int huge_pages_are_on_request(void) {
    char path[128], word[64];
    for (int kb = 8; kb <= 1024; kb *= 2) { // 8 stands for the setting above all sizes
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

// Allocates blocks of this size, one of them in memory that had the attribute. All must keep their bytes, also in a child.
static inline void check_next_user(size_t size, int kind, int place) {
    char *blocks[3];
    set_key_rights(PKEY_DISABLE_ACCESS); // a write to memory that still has the key crashes
    for (int i = 0; i < 3; i++) {
        blocks[i] = malloc(size);
        stamp_pages(blocks[i], size, (unsigned)i); // crashes if the memory is still protected
        // MADV_NOHUGEPAGE may stay on whole units without a free neighbour: the library does not detect it, and it is
        // harmless.
        if (SMAPS_FLAGS[kind] != NULL && !(kind == NO_HUGE_PAGE && size % (2 * MB) == 0))
            CHECK(vma_flag(blocks[i], size, SMAPS_FLAGS[kind]) == 0, "%s is still set at place %d, %zu bytes", KIND_NAMES[kind],
                  place, size);
    }
    if (kind == WIPE_ON_FORK || kind == DONT_FORK) {
        IN_CHILD for (int i = 0; i < 3; i++)
            CHECK(pages_match(blocks[i], size, (unsigned)i), "%s at place %d, %zu bytes", KIND_NAMES[kind], place, size);
    }
    for (int i = 0; i < 3; i++)
        free(blocks[i]);
    set_key_rights(0);
}
