// Where the system leaves huge pages to the program, a large block asks for none
// qemu's user mode leaves advice on huge pages out
#include "marks.h"

// The flags of the mapping that an address lies in, as /proc/self/smaps prints them.
static void flags_of(const void *address, char *flags, size_t bytes) {
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
    if (!is_left_to_the_program())
        SKIP("here the system's policy for huge pages is another");
    char *block = malloc_touched(64 * MB, 1);
    CHECK(statistic("recycler", "live_blocks") == 1);
    flags_of(block, flags, sizeof flags);
    CHECK(strstr(flags, " rd ") != NULL);
    CHECK(strstr(flags, " hg") == NULL);
    CHECK(statistic("recycler", "asks_for_huge_pages") == 0);
    // The flag is seen when a program asks by itself.
    CHECK(madvise(block, 64 * MB, MADV_HUGEPAGE) == 0);
    flags_of(block, flags, sizeof flags);
    CHECK(strstr(flags, " hg") != NULL);
    free(block);
}
