// The command line of the stress program: classes of operations, amounts, and the command that repeats the run.
#include "stress.h"

static const char *const CLASS_NAMES[CLASSES] = {"fork",   "spawn", "cancel",  "churn", "signals", "signal-forks", "advise",
                                                 "hide",   "lock",  "protect", "map",   "trim",    "outside",      "huge"};
bool enabled[CLASSES], failures_expected;
uint64_t first_seed;
const char *replay;
size_t thread_count = 4, live_bytes = 128 * MB;
long operations = 100000, seconds;

static void select_classes(const char *names, bool value) {
    for (size_t length; *names != '\0'; names += length + (names[length] == ',')) {
        int found = 0;
        length = strcspn(names, ",");
        for (int i = 0; i < CLASSES; i++)
            if (strlen(CLASS_NAMES[i]) == length && strncmp(names, CLASS_NAMES[i], length) == 0)
                enabled[i] = value, found = 1;
        CHECK(found, "no class %s", names);
    }
}

static bool number_option(const char *argument, const char *name, unsigned long long *value) {
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0 || argument[length] != '=')
        return false;
    *value = strtoull(argument + length + 1, NULL, 0);
    return true;
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
    unsigned long long value;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(enabled, true, sizeof enabled);
    first_seed = (uint64_t)now.tv_nsec / 1000 * 1000003 % 1000000007;
    for (int i = 1; i < argc; i++) {
        if (number_option(argv[i], "--seed", &value))
            first_seed = value;
        else if (number_option(argv[i], "--threads", &value))
            thread_count = value < 1 ? 1 : value > MOST_THREADS ? MOST_THREADS : value;
        else if (number_option(argv[i], "--operations", &value))
            operations = (long)value;
        else if (number_option(argv[i], "--live", &value))
            live_bytes = value * MB;
        else if (number_option(argv[i], "--mappings", &value))
            mappings_held = value;
        else if (number_option(argv[i], "--seconds", &value))
            seconds = (long)value, operations = INT64_MAX / 2;
        else if (strcmp(argv[i], "--failures") == 0)
            failures_expected = true;
        else if (strncmp(argv[i], "--only=", 7) == 0)
            memset(enabled, false, sizeof enabled), select_classes(argv[i] + 7, true);
        else if (strncmp(argv[i], "--with=", 7) == 0)
            select_classes(argv[i] + 7, true);
        else if (strncmp(argv[i], "--without=", 10) == 0)
            select_classes(argv[i] + 10, false);
        else
            CHECK(false, "unknown option %s; stress.c begins with the list", argv[i]);
    }
    compose_replay(argc, argv);
}
