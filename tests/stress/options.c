// The command line of the stress program: classes of operations, amounts, and the command that repeats the run.
#include "stress.h"

static const char *const CLASS_NAMES[CLASSES] = {"fork",   "spawn", "cancel",  "churn", "signals", "signal-forks", "advise",
                                                 "hide",   "lock",  "protect", "map",   "trim",    "outside",      "huge"};
bool enabled[CLASSES], failures_expected;
uint64_t first_seed;
const char *replay;
size_t thread_count = 4, live_bytes = 128 * MB;
long operations = 100000, seconds;

static void switch_off(const char *names) {
    for (size_t length; *names != '\0'; names += length + (names[length] == ',')) {
        int found = 0;
        length = strcspn(names, ",");
        for (int i = 0; i < CLASSES; i++)
            if (strlen(CLASS_NAMES[i]) == length && strncmp(names, CLASS_NAMES[i], length) == 0)
                enabled[i] = false, found = 1;
        CHECK(found, "no class %s", names);
    }
}

// The options with a number, which is multiplied by the unit.
static const struct {
    const char *name;
    void *value;
    uint64_t unit;
} NUMBERS[] = {{"--seed=", &first_seed, 1},  {"--threads=", &thread_count, 1},     {"--operations=", &operations, 1},
               {"--live=", &live_bytes, MB}, {"--mappings=", &mappings_held, 1}, {"--seconds=", &seconds, 1}};

static bool is_number_option(const char *argument) {
    for (size_t i = 0; i < COUNT(NUMBERS); i++) {
        size_t length = strlen(NUMBERS[i].name);
        if (strncmp(argument, NUMBERS[i].name, length) == 0) {
            *(uint64_t *)NUMBERS[i].value = strtoull(argument + length, NULL, 0) * NUMBERS[i].unit;
            return true;
        }
    }
    return false;
}

// Composes the command line that repeats this run, with the seed.
static void compose_replay(int argc, char **argv) {
    static char line[1024];
    int length = snprintf(line, sizeof line, "%s --seed=%llu", argv[0], (unsigned long long)first_seed);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--seed", 6) != 0 && length < (int)sizeof line)
            length += snprintf(line + length, sizeof line - (size_t)length, " %s", argv[i]);
    replay = line;
}

void read_options(int argc, char **argv) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(enabled, true, sizeof enabled);
    first_seed = (uint64_t)now.tv_nsec / 1000 * 1000003 % 1000000007;
    for (int i = 1; i < argc; i++) {
        if (is_number_option(argv[i]))
            continue;
        if (strcmp(argv[i], "--failures") == 0)
            failures_expected = true;
        else if (strncmp(argv[i], "--without=", 10) == 0)
            switch_off(argv[i] + 10);
        else
            CHECK(false, "unknown option %s; stress.c begins with the list", argv[i]);
    }
    CHECK(thread_count >= 1 && thread_count <= MOST_THREADS, "%zu threads", thread_count);
    if (seconds > 0)
        operations = INT64_MAX / 2;
    compose_replay(argc, argv);
}
