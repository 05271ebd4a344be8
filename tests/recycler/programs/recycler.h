// What the programs of this suite share: numbers from the library's own statistics and the kernel's.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#undef NDEBUG

#define MIB ((size_t)1 << 20)

int flarena_stats_json(char *buffer, size_t len) __attribute__((weak));
int flarena_trim(void) __attribute__((weak));

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                            \
            _exit(1);                                                                          \
        }                                                                                      \
    } while (0)

// A number of the "recycler" object, its "fallbacks" included.
static inline long long recycler_number(const char *name)
{
    static char text[1 << 16];
    char quoted[64];
    CHECK(flarena_stats_json(text, sizeof text) < (int)sizeof text);
    char *from = strstr(text, "\"recycler\":{");
    CHECK(from != NULL);
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    from = strstr(from, quoted);
    CHECK(from != NULL);
    return strtoll(from + strlen(quoted), NULL, 10);
}

// A number of bytes from /proc/self/status, such as "VmRSS:".
static inline long long status_bytes(const char *label)
{
    char line[256];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, label, strlen(label)) == 0)
            kilobytes = atoll(line + strlen(label));
    fclose(file);
    return kilobytes * 1024;
}

static inline void touch(char *block, size_t bytes, char value)
{
    for (size_t at = 0; at < bytes; at += 4096)
        block[at] = value;
    block[bytes - 1] = value;
}

static inline char *touched(size_t bytes, char value)
{
    char *block = malloc(bytes);
    CHECK(block != NULL);
    touch(block, bytes, value);
    return block;
}

static inline int is_large(const void *block)
{
    return ((size_t)block & (2 * MIB - 1)) == 0;
}
