// Names and statistics.
#include "tests.h"

TEST("flarena_allocator returns the mode and flarena_version a dotted number, in static strings") {
    CHECK(mode_is(flarena_allocator()), "%s", flarena_allocator());
    CHECK(flarena_allocator() == flarena_allocator() && flarena_version() == flarena_version(), "the pointers differ");
    int major, minor, patch;
    CHECK(sscanf(flarena_version(), "%d.%d.%d", &major, &minor, &patch) == 3, "%s", flarena_version());
    CHECK(ends_with(library_of((void *)flarena_version()), "libflarena.so"), "%s", flarena_version());
}

static long field(const char *json, const char *name) {
    const char *found = strstr(json, name);
    CHECK(found != NULL, "no %s in %s", name, json);
    return atol(found + strlen(name) + 1);
}

static char text[1 << 16];

// The live bytes beyond `before`, as soon as they are within these limits. Where a walk over glibc's heap took long, for
// example because the thread had no processor, the library reads its numbers less often.
static long live_beyond(long before, long least, long most) {
    long beyond = LONG_MIN;
    for (int tenth = 0; tenth < 600 && (beyond <= least || beyond >= most); tenth++) {
        if (tenth > 0)
            sleep_ms(100);
        flarena_stats_json(text, sizeof text);
        beyond = field(text, "\"live_bytes\"") - before;
    }
    return beyond;
}

TEST("flarena_stats_json returns its length as snprintf does, never writes past the buffer, and reports live bytes within 30 %") {
    static char cut[1 << 16];
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
    long more = live_beyond(before, 68 * MB, 90 * MB);
    CHECK(more > (long)(68 * MB) && more < (long)(90 * MB), "%ld bytes more for 70 MB", more);
    free(large);
    for (size_t i = 0; i < COUNT(small_blocks); i++)
        free(small_blocks[i]);
    long left = live_beyond(before, LONG_MIN, 2 * MB);
    CHECK(left < (long)(2 * MB), "%ld bytes more after all blocks were freed", left);
    puts(text); // run.sh parses it as JSON
}

static void stats_have(const char *text) {
    static char json[1 << 16];
    CHECK(flarena_stats_json(json, sizeof json) < (int)sizeof json, "more than %zu bytes", sizeof json);
    CHECK(strstr(json, text) != NULL, "no %s in %s", text, json);
}

TEST("flarena_stats_json reports the sizes of flarena_note_pools and flarena_note_gpu, null for (size_t)-1, and in a forked child only those of its own memory") {
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
    IN_CHILD {
        stats_have("\"arrow_bytes\":123456");
        stats_have("\"pinned_bytes\":null");
        stats_have("\"gpu_allocated_bytes\":null");
        stats_have("\"gpu_reserved_bytes\":null");
    }
    stats_have("\"pinned_bytes\":654321");
}
