// Writes markers with flarena_mark.
//
//   marker many THREADS COUNT   COUNT markers from each thread; failures are ignored
//   marker one STAGE SITE ROUND one marker
//   marker odd                  unusual stages, sites and rounds
//   marker fork                 one marker, then one in each of two children
#define SKIP_OWNER_CHECK
#include "../check.h"

static int count;

static void exit_if_failed(int result) {
    if (result != 0) {
        printf("flarena_mark: %s\n", strerror(errno));
        exit(1);
    }
}

static void *many(void *unused) {
    for (int i = 0; i < count; i++)
        flarena_mark("send", "site-1", i); // continues if the file cannot be written
    return unused;
}

// Each marker is either written or refused with an errno.
static void mark_odd(const char *stage, const char *site, long round) {
    errno = 0;
    int result = flarena_mark(stage, site, round);
    CHECK(result == 0 || (result == -1 && errno != 0), "%d, errno %d", result, errno);
}

static void odd(void) {
    static char megabyte[1 << 20];
    memset(megabyte, 'x', sizeof megabyte - 1);
    mark_odd(NULL, NULL, -1);
    mark_odd("", "", 0);
    mark_odd("two\nlines\r\nand \x1b[31m more", "site\none", 1);
    mark_odd("\"quoted\" \\ back\\slash", "s\"ite", 2);
    mark_odd("invalid \xff\xfe\xc3\x28 UTF-8", "\xed\xa0\x80", 3);
    mark_odd(megabyte, megabyte, 4);
    mark_odd("größe-训练-🚀", "sité-1", 5);
    mark_odd("%s%n%d", "%p", 6);
    mark_odd("tab\tand\x01control\x7f", "a b", 7);
    mark_odd("largest", "round", 9223372036854775807L);
    mark_odd("smallest", "round", -9223372036854775807L - 1);
    memset(megabyte, '"', sizeof megabyte - 1);
    mark_odd(megabyte, "after", 8);
    // The 128th byte lies inside a character.
    mark_odd("x""üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü", "cut", 9);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    if (strcmp(argv[1], "many") == 0 && argc == 4) {
        pthread_t threads[256];
        size_t thread_count = strtoul(argv[2], NULL, 10);
        count = atoi(argv[3]);
        start_threads(threads, thread_count, many);
        join_threads(threads, thread_count);
    } else if (strcmp(argv[1], "one") == 0 && argc == 5) {
        exit_if_failed(flarena_mark(argv[2], argv[3], atol(argv[4])));
    } else if (strcmp(argv[1], "odd") == 0) {
        odd();
    } else if (strcmp(argv[1], "fork") == 0) {
        exit_if_failed(flarena_mark("parent", "site-1", 0));
        for (int i = 0; i < 2; i++)
            if (fork() == 0) {
                exit_if_failed(flarena_mark("child", "site-1", i));
                exit(0);
            }
        while (wait(NULL) > 0) {
        }
    }
    puts("done");
}
