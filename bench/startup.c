/* Time that a preload adds to the start of a program, in microseconds.
 *
 *   startup --runs N -- COMMAND [ARGUMENT...]
 *
 * Starts COMMAND alternately without and with the library in BENCH_PRELOAD, and reports the lower quartile of each,
 * because other processes can only slow down a start. Both get all other variables of the environment. */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

static double run_us(char **command) {
    pid_t pid;
    int status;
    double start = clock_s(CLOCK_MONOTONIC);
    if (posix_spawn(&pid, command[0], NULL, NULL, command, environ) != 0) die("posix_spawn");
    if (waitpid(pid, &status, 0) != pid || status != 0) die("the command failed");
    return (clock_s(CLOCK_MONOTONIC) - start) * 1e6;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double lower_quartile(double *values, unsigned count) {
    qsort(values, count, sizeof *values, ascending);
    return values[count / 4];
}

int main(int argc, char **argv) {
    unsigned runs = (unsigned)argument(argc, argv, "runs", 200);
    const char *library = getenv("BENCH_PRELOAD");
    double *bare = calloc(runs, sizeof *bare), *preloaded = calloc(runs, sizeof *preloaded);
    char **command = argv + argc;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) command = argv + i + 1;
    if (!*command || !bare || !preloaded) die("usage: startup --runs N -- COMMAND");
    for (unsigned i = 0; i < runs; i++) {
        unsetenv("LD_PRELOAD");
        bare[i] = run_us(command);
        if (library) setenv("LD_PRELOAD", library, 1);
        preloaded[i] = run_us(command);
    }
    double without = lower_quartile(bare, runs), with = lower_quartile(preloaded, runs);
    printf("{\"bare_us\": %.1f, \"preloaded_us\": %.1f, \"over_bare_us\": %.1f}\n", without, with, with - without);
    return 0;
}
