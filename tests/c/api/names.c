// flarena_allocator returns the mode and flarena_version a dotted number, in static strings
#include "check.h"
#include "flarena.h"

int main(void) {
    CHECK(mode_is(flarena_allocator()), "%s", flarena_allocator());
    CHECK(flarena_allocator() == flarena_allocator() && flarena_version() == flarena_version(), "the pointers differ");
    int major, minor, patch;
    CHECK(sscanf(flarena_version(), "%d.%d.%d", &major, &minor, &patch) == 3, "%s", flarena_version());
    CHECK(ends_with(library_of((void *)flarena_version()), "libflarena.so"), "%s", flarena_version());
}
