// flarena_stats_json returns its length as snprintf does, never writes past the buffer, and reports live bytes within 30 %
#include "check.h"
#include "flarena.h"
#include <limits.h>

static long field(const char *json, const char *name) {
    const char *found = strstr(json, name);
    CHECK(found != NULL, "no %s in %s", name, json);
    return atol(found + strlen(name) + 1);
}

int main(void) {
    static char text[1 << 16], cut[1 << 16];
    int needed = flarena_stats_json(NULL, 0);
    CHECK(needed > 100 && needed < (int)sizeof text, "%d bytes needed", needed);
    int written = flarena_stats_json(text, sizeof text);
    CHECK(written == (int)strlen(text), "%d bytes for a text of %zu", written, strlen(text));
    for (size_t length = 1; length < 40; length += 13) {
        memset(cut, 0x7f, sizeof cut);
        int whole = flarena_stats_json(cut, length);
        CHECK(whole > 100, "%d when cut to %zu", whole, length);
        CHECK(strlen(cut) == length - 1 && cut[length] == 0x7f, "cut to %zu: %.60s", length, cut);
    }
    long before = field(text, "\"live_bytes\"");
    void *large = malloc(50 * MB), *small_blocks[10000];
    for (size_t i = 0; i < COUNT(small_blocks); i++)
        small_blocks[i] = malloc(2000);
    flarena_stats_json(text, sizeof text);
    long more = field(text, "\"live_bytes\"") - before;
    CHECK(more > (long)(68 * MB) && more < (long)(90 * MB), "%ld bytes more for 70 MB", more);
    free(large);
    for (size_t i = 0; i < COUNT(small_blocks); i++)
        free(small_blocks[i]);
    long left = LONG_MAX;
    // Where a walk over glibc's heap takes long, as on a slow machine, the library reads its numbers less often.
    for (int tenth = 0; tenth < 50 && left >= (long)(2 * MB); tenth++) {
        if (tenth > 0)
            sleep_ms(100);
        flarena_stats_json(text, sizeof text);
        left = field(text, "\"live_bytes\"") - before;
    }
    CHECK(left < (long)(2 * MB), "%ld bytes more after all blocks were freed", left);
    puts(text); // run.sh parses it as JSON
}
