// flarena_stats_json reports the sizes of flarena_note_pools and flarena_note_gpu, null for (size_t)-1, and in a forked child only those of its own memory
#include "check.h"
#include "flarena.h"

static void stats_have(const char *text) {
    static char json[1 << 16];
    CHECK(flarena_stats_json(json, sizeof json) < (int)sizeof json, "more than %zu bytes", sizeof json);
    CHECK(strstr(json, text) != NULL, "no %s in %s", text, json);
}

int main(void) {
    stats_have("\"arrow_bytes\":null");
    stats_have("\"pinned_bytes\":null");
    stats_have("\"pymalloc_bytes\":null");
    stats_have("\"gpu_allocated_bytes\":null");
    stats_have("\"gpu_reserved_bytes\":null");
    flarena_note_pools(123456, (size_t)-1);
    stats_have("\"arrow_bytes\":123456");
    stats_have("\"pinned_bytes\":null");
    flarena_note_pools((size_t)-1, 0);
    flarena_note_gpu(0, 2097152);
    stats_have("\"arrow_bytes\":null");
    stats_have("\"pinned_bytes\":0");
    stats_have("\"gpu_allocated_bytes\":0");
    stats_have("\"gpu_reserved_bytes\":2097152");
    flarena_note_pools(123456, 654321);
    pid_t child = fork();
    if (child == 0) {
        stats_have("\"arrow_bytes\":123456");
        stats_have("\"pinned_bytes\":null");
        stats_have("\"gpu_allocated_bytes\":null");
        stats_have("\"gpu_reserved_bytes\":null");
        _exit(0);
    }
    CHECK_CHILD(child);
    stats_have("\"pinned_bytes\":654321");
}
