// Where the system leaves huge pages to the program, a large block asks for none
#include "recycler.h"

// The flags of the mapping that an address lies in, as /proc/self/smaps prints them.
static void flags_of(const void *address, char *flags, size_t bytes)
{
    char line[512];
    unsigned long from, to;
    int inside = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
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

int main(void)
{
    char flags[512], policy[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (file == NULL || !fgets(policy, sizeof policy, file) || !strstr(policy, "[madvise]")) {
        puts("the system's policy for huge pages is not madvise");
        return 77;
    }
    fclose(file);
    char *block = touched(64 * MIB, 1);
    CHECK(is_large(block));
    flags_of(block, flags, sizeof flags);
    CHECK(strstr(flags, " rd ") != NULL);
    CHECK(strstr(flags, " hg") == NULL);
    // The flag is seen when a program asks by itself.
    CHECK(madvise(block, 64 * MIB, MADV_HUGEPAGE) == 0);
    flags_of(block, flags, sizeof flags);
    CHECK(strstr(flags, " hg") != NULL);
    free(block);
}
