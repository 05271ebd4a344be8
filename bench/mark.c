/* The cost of one stage marker (flarena_mark) in a process of some size.
 *
 *   mark --megabytes N --blocks N --marks N --on 0|1
 *
 * Holds `megabytes` in one touched block and `blocks` small ones, because statistics must not cost more in a large
 * process. The fastest of ten batches counts, by the CPU clock of the thread. Whether markers are on is the environment's affair (NVFLARE_CLIENT_MEMORY_PROFILE); the caller says with
 * `on` which of the two it expects, so that a marker that fails is not mistaken for a fast one. */
#include <dlfcn.h>

#include "bench.h"

int main(int argc, char **argv) {
    size_t bytes = (size_t)argument(argc, argv, "megabytes", 256) << 20;
    unsigned blocks = (unsigned)argument(argc, argv, "blocks", 100000);
    unsigned marks = (unsigned)argument(argc, argv, "marks", 2000);
    int on = (int)argument(argc, argv, "on", 1);
    int (*mark)(const char *, const char *, long) = (int (*)(const char *, const char *, long))dlsym(RTLD_DEFAULT, "flarena_mark");
    if (!mark) die("flarena_mark is not here: is the library preloaded?");
    char *block = malloc(bytes);
    void **small = calloc(blocks, sizeof *small);
    if (!block || !small) die("malloc");
    touch(block, bytes);
    for (unsigned i = 0; i < blocks; i++) small[i] = malloc(100);
    if (mark("warm-up", "site-1", 0) != 0 && on) die("flarena_mark");
    double best = 1e30;
    for (unsigned batch = 0; batch < 10; batch++) {
        double start = thread_cpu_s();
        for (unsigned i = 0; i < marks; i++) mark("receive", "site-1", (long)i);
        double ns = (thread_cpu_s() - start) * 1e9 / marks;
        if (ns < best) best = ns;
    }
    for (unsigned i = 0; i < blocks; i++) free(small[i]);
    free(small);
    free(block);
    printf("{\"mark_ns\": %.1f}\n", best);
    return 0;
}
