// flarena_trim, flarena_mark and flarena_stats_json work in a thread with the smallest stack that is allowed
#include "check.h"
#include "flarena.h"

static void *work(void *unused) {
    static char json[1 << 16];
    CHECK(flarena_mark("stage", "site-1", 1) == 0, "no marker");
    flarena_trim();
    CHECK(flarena_stats_json(json, sizeof json) > 0, "no statistics");
    return unused;
}

int main(int argc, char **argv) {
    pthread_attr_t small;
    pthread_t thread;
    if (argc == 1) {
        setenv("NVFLARE_CLIENT_MEMORY_PROFILE", "1", 1);
        setenv("FLARENA_MARKER_FILE", "/dev/null", 1);
        // Markers go there, too.
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execl("/proc/self/exe", argv[0], "marked", NULL);
    }
    pthread_attr_init(&small);
    CHECK(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN) == 0, "a stack of %ld bytes", (long)PTHREAD_STACK_MIN);
    CHECK(pthread_create(&thread, &small, work, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}
