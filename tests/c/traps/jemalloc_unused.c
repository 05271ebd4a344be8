// in glibc mode the embedded jemalloc maps no memory
#include "check.h"

// Counts mappings as jemalloc makes them: anonymous, writable, and aligned to 2 MiB at both ends.
static int jemalloc_mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    char line[512];
    int count = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        size_t start, end;
        unsigned long inode;
        char access[5];
        CHECK(sscanf(line, "%zx-%zx %4s %*x %*s %lu", &start, &end, access, &inode) == 4, "%s", line);
        count += inode == 0 && access[1] == 'w' && start % (2 * MB) == 0 && end % (2 * MB) == 0;
    }
    fclose(maps);
    return count;
}

int main(void) {
    free(malloc(100));
    CHECK((jemalloc_mappings() > 0) == mode_is("jemalloc"), "%d mappings", jemalloc_mappings());
}
