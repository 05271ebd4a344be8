// libraries that allocate in constructors and free in destructors can be loaded and unloaded again and again
#include "check.h"

int main(void) {
    // Libraries that most systems with glibc have; some load others.
    const char *names[] = {"libm.so.6", "libresolv.so.2", "libnss_files.so.2", "libstdc++.so.6", "libgcc_s.so.1"};
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < COUNT(names); i++) {
            void *library = dlopen(names[i], round % 2 ? RTLD_NOW : RTLD_LAZY);
            if (library == NULL)
                continue;
            free(malloc(3 * MB));
            CHECK(dlclose(library) == 0, "dlclose(%s): %s", names[i], dlerror());
        }
    CHECK(dlopen("no such library", RTLD_NOW) == NULL && dlerror() != NULL, "a missing library was loaded");
}
