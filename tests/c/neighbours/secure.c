// a set-user-id program ignores all settings: glibc mode, no marker, no message
#define SKIP_OWNER_CHECK
#include "check.h"
#include <sys/auxv.h>

int main(void) {
    if (getauxval(AT_SECURE) == 0)
        SKIP("set-user-id has no effect here");
    CHECK(ends_with(library_of((void *)malloc), "libflarena.so"), "malloc belongs to %s", library_of((void *)malloc));
    CHECK(strcmp(flarena_allocator(), "glibc") == 0, "%s", flarena_allocator());
    CHECK(flarena_mark("stage", "site", 1) == 0, "mark: %s", strerror(errno));
    free(malloc(5 * MB));
}
