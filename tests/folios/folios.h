// Reads a block's pages and mappings from /proc.
#pragma once

#include "recycler/vma_attributes.h"

static inline long minor_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

// The number of pages of the range that are in memory, by /proc/self/pagemap.
static inline size_t present_pages(const char *start, size_t bytes) {
    size_t present = 0;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    CHECK(pagemap >= 0, "cannot open /proc/self/pagemap");
    for (size_t page = 0; page < bytes / 4096; page++) {
        uint64_t entry = 0;
        off_t at = (off_t)(((uintptr_t)start / 4096 + page) * sizeof entry);
        CHECK(pread(pagemap, &entry, sizeof entry, at) == (ssize_t)sizeof entry);
        present += (size_t)(entry >> 63);
    }
    close(pagemap);
    return present;
}
