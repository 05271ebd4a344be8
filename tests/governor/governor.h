// What the governor's test programs share: the check header, heaps of small blocks, and the
// process's own threads and statistics.
#pragma once

#include "../c/check.h"

#include <dirent.h>
#include <time.h>

#define SMALL 100

// The number of threads whose name is this one.
__attribute__((unused)) static int threads_named(const char *name) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL, "no /proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], seen[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "re");
        if (comm == NULL)
            continue;
        if (fgets(seen, sizeof seen, comm) != NULL)
            seen[strcspn(seen, "\n")] = '\0';
        fclose(comm);
        count += strcmp(seen, name) == 0;
    }
    closedir(tasks);
    return count;
}

// A list of small touched blocks, linked through themselves: no large block anywhere.
__attribute__((unused)) static void **small_heap(size_t bytes) {
    void **head = NULL;
    for (size_t have = 0; have < bytes; have += SMALL) {
        void **block = malloc(SMALL);
        CHECK(block != NULL, "NULL after %zu bytes", have);
        memset(block, 1, SMALL);
        *block = head;
        head = block;
    }
    return head;
}

// Frees all but one in a thousand, so that the heap stays where it is.
__attribute__((unused)) static void free_most(void **head) {
    for (size_t index = 0; head != NULL; index++) {
        void **next = *head;
        if (index % 1000 != 0)
            free(head);
        head = next;
    }
}

__attribute__((unused)) static void sleep_ms(long ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

// Waits until the resident set is below this; fails after half a minute.
__attribute__((unused)) static void await_rss_below(long bytes) {
    for (int tenth = 0; tenth < 300; tenth++) {
        if (rss_bytes() < bytes)
            return;
        sleep_ms(100);
    }
    CHECK(rss_bytes() < bytes, "%ld MB resident, wanted less than %ld", rss_bytes() >> 20, bytes >> 20);
}

__attribute__((unused)) static void await_governor(void) {
    for (int tenth = 0; tenth < 100 && threads_named("flarena") == 0; tenth++)
        sleep_ms(100);
    CHECK(threads_named("flarena") == 1, "%d governors", threads_named("flarena"));
}

// A number out of flarena_stats_json, wherever it stands.
__attribute__((unused)) static long statistic(const char *name) {
    static char json[32 << 10];
    char quoted[64];
    int (*stats)(char *, size_t);
    *(void **)&stats = dlsym(RTLD_DEFAULT, "flarena_stats_json");
    CHECK(stats != NULL && stats(json, sizeof json) < (int)sizeof json, "no statistics");
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *found = strstr(json, quoted);
    CHECK(found != NULL, "no %s in %s", name, json);
    return atol(found + strlen(quoted));
}
