// where the system leaves huge pages to the program, a large block has no MADV_HUGEPAGE
// qemu's user mode ignores advice on huge pages
#include "vma_attributes.h"

// The VmFlags line of the mapping that contains the address.
static void read_vma_flags(const void *address, char *flags, size_t bytes) {
    char line[512];
    unsigned long from, to;
    int inside = 0;
    FILE *file = fopen("/proc/self/smaps", "re");
    CHECK(file != NULL);
    flags[0] = '\0';
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from <= (size_t)address && (size_t)address < to;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, bytes, "%s", line);
    }
    fclose(file);
}

int main(void) {
    char flags[512];
    if (!huge_pages_are_on_request())
        SKIP("this system does not leave huge pages to the program");
    char *block = malloc_touched(64 * MB, 1);
    CHECK(statistic("recycler", "live_blocks") == 1);
    read_vma_flags(block, flags, sizeof flags);
    CHECK(strstr(flags, " rd ") != NULL);
    CHECK(strstr(flags, " hg") == NULL);
    CHECK(statistic("recycler", "asks_for_huge_pages") == 0);
    // The test sees the flag when a program sets it.
    CHECK(madvise(block, 64 * MB, MADV_HUGEPAGE) == 0);
    read_vma_flags(block, flags, sizeof flags);
    CHECK(strstr(flags, " hg") != NULL);
    free(block);
}
