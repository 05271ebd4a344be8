// Where the system leaves huge pages to the program, a large block asks for none
#include "check.h"
#include <sys/mman.h>

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
    char flags[512], policy[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (file == NULL || !fgets(policy, sizeof policy, file) || !strstr(policy, "[madvise]"))
        SKIP("the system's policy for huge pages is not madvise");
    fclose(file);
    char *block = touched(64 * MB, 1);
    CHECK(statistic("recycler", "live_blocks") == 1);
    flags_of(block, flags, sizeof flags);
    CHECK(strstr(flags, " rd ") != NULL);
    CHECK(strstr(flags, " hg") == NULL);
    // The flag is seen when a program asks by itself.
    CHECK(madvise(block, 64 * MB, MADV_HUGEPAGE) == 0);
    flags_of(block, flags, sizeof flags);
    CHECK(strstr(flags, " hg") != NULL);
    free(block);
}
