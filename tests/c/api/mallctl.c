// dlsym finds mallctl and the mallocx family in jemalloc mode only, and the calls work there
#include "check.h"

int main(void) {
    const char *names[] = {"mallctl", "mallctlnametomib", "mallctlbymib", "malloc_stats_print", "mallocx", "rallocx",
                           "xallocx", "sallocx", "dallocx", "sdallocx", "nallocx"};
    for (size_t i = 0; i < COUNT(names); i++) {
        void *found = dlsym(RTLD_DEFAULT, names[i]);
        CHECK((found != NULL) == mode_is("jemalloc"), "%s is %s", names[i], found ? "exported" : "missing");
    }
    if (!mode_is("jemalloc"))
        return 0;
    int (*mallctl)(const char *, void *, size_t *, void *, size_t);
    int (*to_mib)(const char *, size_t *, size_t *), (*by_mib)(const size_t *, size_t, void *, size_t *, void *, size_t);
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&to_mib = dlsym(RTLD_DEFAULT, "mallctlnametomib");
    *(void **)&by_mib = dlsym(RTLD_DEFAULT, "mallctlbymib");
    const char *version;
    size_t size = sizeof version;
    CHECK(mallctl("version", &version, &size, NULL, 0) == 0 && version[0] == '5', "version");
    ssize_t decay = 0;
    size = sizeof decay;
    CHECK(mallctl("opt.dirty_decay_ms", &decay, &size, NULL, 0) == 0 && decay == 5000, "dirty_decay_ms %zd", decay);
    size_t mib[8], depth = COUNT(mib);
    CHECK(to_mib("opt.muzzy_decay_ms", mib, &depth) == 0, "mallctlnametomib");
    CHECK(by_mib(mib, depth, &decay, &size, NULL, 0) == 0 && decay == 5000, "muzzy_decay_ms %zd", decay);
    CHECK(mallctl("no.such.name", NULL, NULL, NULL, 0) == ENOENT, "an unknown name is not ENOENT");
}
