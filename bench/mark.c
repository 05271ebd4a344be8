/* Cost of a stage marker (flarena_mark).
 *
 *   mark --megabytes N --blocks N --marks N --on 0|1
 *
 * The process holds `megabytes` in one touched block, and `blocks` small ones: a marker must not cost more in a large
 * process. The fastest of ten batches counts, by the CPU clock of the thread. NVFLARE_CLIENT_MEMORY_PROFILE switches
 * markers on. `on` says whether they are expected, so that a failing marker is not taken for a fast one. */
#include <dlfcn.h>

#include "bench.h"

int main(int argc, char **argv) {
    size_t bytes = (size_t)argument(argc, argv, "megabytes", 256) << 20;
    unsigned blocks = (unsigned)argument(argc, argv, "blocks", 100000);
    unsigned marks = (unsigned)argument(argc, argv, "marks", 2000);
    int on = (int)argument(argc, argv, "on", 1);
    int (*mark)(const char *, const char *, long) = dlsym(RTLD_DEFAULT, "flarena_mark");
    if (!mark) die("flarena_mark is missing: preload libflarena.so");
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
