// Emits markers through flarena_mark, found by name so that it also starts without the library.
//
//   mark many THREADS COUNT   from each thread, COUNT markers, whatever becomes of them
//   mark one STAGE SITE ROUND one marker
//   mark odd                  names that no sane program passes
//   mark fork                 one marker, then one in each of two children
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

static void must(int result) {
    if (result != 0) {
        printf("flarena_mark: %s\n", strerror(errno));
        exit(1);
    }
}

static void *many(void *unused) {
    for (int i = 0; i < count; i++)
        mark("send", "site-1", i); // a file that cannot be written is no reason to stop
    return unused;
}

// Each either marks or is refused with a reason.
static void odd_one(const char *stage, const char *site, long round) {
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
    odd_one(NULL, NULL, -1);
    odd_one("", "", 0);
    odd_one("two\nlines\r\nand \x1b[31m more", "site\none", 1);
    odd_one("\"quoted\" \\ back\\slash", "s\"ite", 2);
    odd_one("invalid \xff\xfe\xc3\x28 UTF-8", "\xed\xa0\x80", 3);
    odd_one(megabyte, megabyte, 4);
    odd_one("größe-训练-🚀", "sité-1", 5);
    odd_one("%s%n%d", "%p", 6);
    odd_one("tab\tand\x01control\x7f", "a b", 7);
    odd_one("largest", "round", 9223372036854775807L);
    odd_one("smallest", "round", -9223372036854775807L - 1);
    memset(megabyte, '"', sizeof megabyte - 1);
    odd_one(megabyte, "after", 8);
    // 128 bytes end inside a character.
    odd_one("x""üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü", "cut", 9);
}

int main(int argc, char **argv) {
    *(void **)&mark = dlsym(RTLD_DEFAULT, "flarena_mark");
    if (mark == NULL || argc < 2) {
        printf("no flarena_mark, or no arguments\n");
        return 1;
    }
    if (strcmp(argv[1], "many") == 0 && argc == 4) {
        pthread_t threads[256];
        int threads_wanted = atoi(argv[2]);
        count = atoi(argv[3]);
        for (int i = 0; i < threads_wanted; i++)
            pthread_create(&threads[i], NULL, many, NULL);
        for (int i = 0; i < threads_wanted; i++)
            pthread_join(threads[i], NULL);
    } else if (strcmp(argv[1], "one") == 0 && argc == 5) {
        must(mark(argv[2], argv[3], atol(argv[4])));
    } else if (strcmp(argv[1], "odd") == 0) {
        odd();
    } else if (strcmp(argv[1], "fork") == 0) {
        must(mark("parent", "site-1", 0));
        for (int i = 0; i < 2; i++)
            if (fork() == 0) {
                must(mark("child", "site-1", i));
                exit(0);
            }
        while (wait(NULL) > 0) {
        }
    }
    puts("done");
}
