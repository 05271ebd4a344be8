// a program whose first call of a jemalloc function binds it works, or gets an error in glibc mode
#include "check.h"

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

int main(void) {
    const char *version = NULL;
    size_t len = sizeof version;
    if (mode_is("bare")) return 0;
    int error = mallctl("version", &version, &len, NULL, 0);
    CHECK(error == (mode_is("jemalloc") ? 0 : ENOENT), "error %d", error);
}
