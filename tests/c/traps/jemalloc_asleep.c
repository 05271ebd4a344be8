// where glibc serves, the embedded jemalloc does not wake: it maps nothing of its own
#include "check.h"

// Mappings of the kind that jemalloc makes: whole multiples of 2 MiB, without a file.
static int jemallocs_mappings(void) {
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
    CHECK((jemallocs_mappings() > 0) == mode_is("jemalloc"), "%d mappings", jemallocs_mappings());
    return 0;
}
