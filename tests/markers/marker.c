// Writes markers with flarena_mark. It finds the function by dlsym, so that it also starts without the library.
//
//   marker many THREADS COUNT   COUNT markers from each thread; failures are ignored
//   marker one STAGE SITE ROUND one marker
//   marker odd                  unusual stages, sites and rounds
//   marker fork                 one marker, then one in each of two children
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*mark)(const char *stage, const char *site, long round);
static int count;

static void exit_if_failed(int result) {
    if (result != 0) {
        printf("flarena_mark: %s\n", strerror(errno));
        exit(1);
    }
}

static void *many(void *unused) {
    for (int i = 0; i < count; i++)
        mark("send", "site-1", i); // continues if the file cannot be written
    return unused;
}

// Each marker is either written or refused with an errno.
static void mark_odd(const char *stage, const char *site, long round) {
    errno = 0;
    int result = mark(stage, site, round);
    if (result != 0 && (result != -1 || errno == 0)) {
        printf("flarena_mark: %d, errno %d\n", result, errno);
        exit(1);
    }
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
    *(void **)&mark = dlsym(RTLD_DEFAULT, "flarena_mark");
    if (mark == NULL || argc < 2) {
        printf("flarena_mark is missing, or there are no arguments\n");
        return 1;
    }
    if (strcmp(argv[1], "many") == 0 && argc == 4) {
        pthread_t threads[256];
        int thread_count = atoi(argv[2]);
        count = atoi(argv[3]);
        for (int i = 0; i < thread_count; i++)
            pthread_create(&threads[i], NULL, many, NULL);
        for (int i = 0; i < thread_count; i++)
            pthread_join(threads[i], NULL);
    } else if (strcmp(argv[1], "one") == 0 && argc == 5) {
        exit_if_failed(mark(argv[2], argv[3], atol(argv[4])));
    } else if (strcmp(argv[1], "odd") == 0) {
        odd();
    } else if (strcmp(argv[1], "fork") == 0) {
        exit_if_failed(mark("parent", "site-1", 0));
        for (int i = 0; i < 2; i++)
            if (fork() == 0) {
                exit_if_failed(mark("child", "site-1", i));
                exit(0);
            }
        while (wait(NULL) > 0) {
        }
    }
    puts("done");
}
