// a program whose first call of a jemalloc function binds it works, or gets an error in glibc mode
#include "jemalloc.h"

int main(void) {
    const char *version = NULL;
    size_t len = sizeof version;
    if (mode_is("bare")) return 0;
    int error = mallctl("version", &version, &len, NULL, 0);
    CHECK(error == (mode_is("jemalloc") ? 0 : ENOENT), "error %d", error);
}
