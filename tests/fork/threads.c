// Forks while other threads use the allocator.
#include "tests.h"
#include <spawn.h>
#include <stdatomic.h>

extern char **environ;

enum { FORKS = 40 };

static atomic_int stop;
static pthread_t threads[4];

static void stop_threads(void) {
    atomic_store(&stop, 1);
    join_threads(threads, COUNT(threads));
}

static void *churn(void *unused) {
    char *blocks[16] = {0};
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        replace_random(blocks, COUNT(blocks), 1, i % 8 == 0 ? 6 * MB : 3000);
        if (i % 1000 == 0)
            malloc_trim(0);
    }
    for (int i = 0; i < 16; i++)
        free(blocks[i]);
    return unused;
}

TEST("a process can fork while its threads allocate; the child can allocate, free, trim and exit") {
    start_threads(threads, COUNT(threads), churn);
    void *kept = malloc(5 * MB);
    fill(kept, 5 * MB, 1);
    for (int round = 0; round < FORKS; round++) {
        IN_CHILD {
            for (size_t i = 0; i < COUNT(SIZES); i++)
                free(memset(malloc(SIZES[i]), 1, SIZES[i]));
            size_t wrong = first_mismatch(kept, 5 * MB, 1);
            CHECK(wrong == 5 * MB, "byte %zu of the parent's block is wrong in the child", wrong);
            free(realloc(kept, 9 * MB));
            malloc_trim(0);
            exit(0);
        }
        CHECK(first_mismatch(kept, 5 * MB, 1) == 5 * MB, "the child changed the parent's block");
    }
    stop_threads();
}

TEST("vfork, posix_spawn, system and popen work while threads allocate") {
    char *arguments[] = {"true", NULL}, answer[20];
    start_threads(threads, COUNT(threads), churn);
    for (int i = 0; i < 25; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execv("/bin/true", arguments);
            _exit(127);
        }
        CHECK_CHILD(child);
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
        CHECK_CHILD(child);
        CHECK(system("exit 3") >> 8 == 3);
        FILE *echo = popen("echo answer", "r");
        CHECK(echo != NULL && fgets(answer, sizeof answer, echo) != NULL && strcmp(answer, "answer\n") == 0);
        CHECK(pclose(echo) == 0);
    }
    stop_threads();
}

static void *use_some(void *unused) {
    for (size_t i = 0; i < 20; i++) {
        free(malloc_touched(3 * MB + i * 1000, 1));
        free(malloc(100));
    }
    return unused;
}

static void generation(int left) {
    pthread_t own[4];
    char *held[30];
    for (size_t i = 0; i < COUNT(held); i++)
        held[i] = malloc_touched(4 * MB, (char)left);
    start_threads(own, COUNT(own), use_some);
    if (left > 0)
        IN_CHILD {
            generation(left - 1);
            exit(0);
        }
    join_threads(own, COUNT(own));
    for (size_t i = 0; i < COUNT(held); i++) {
        CHECK(held[i][4 * MB - 1] == left, "a held block changed");
        free(held[i]);
    }
}

TEST("a forked child can start threads that allocate and fork again, four generations deep") {
    generation(4);
}

enum { LINES = 3 };

static FILE *lines(void) {
    FILE *file = tmpfile();
    CHECK(file != NULL, "tmpfile: %s", strerror(errno));
    for (int line = 0; line < LINES; line++) {
        for (size_t at = 0; at < MB + (size_t)line * 300 * KB; at++)
            putc('a' + line, file);
        putc('\n', file);
    }
    return file;
}

static void *read_lines(void *unused) {
    FILE *file = lines();
    while (!atomic_load(&stop)) {
        char *line = NULL;
        size_t capacity = 0;
        rewind(file);
        for (int i = 0; i < LINES; i++) {
            ssize_t length = getline(&line, &capacity, file);
            CHECK(length == (ssize_t)(MB + (size_t)i * 300 * KB + 1) && line[length - 2] == 'a' + i, "line %d: %zd", i, length);
        }
        free(line);
    }
    fclose(file);
    return unused;
}

static void *flush(void *unused) {
    while (!atomic_load(&stop))
        usleep(2000), fflush(NULL);
    return unused;
}

TEST("a process can fork while its threads read long lines with getline and flush all files") {
    start_threads(threads, COUNT(threads) - 1, read_lines);
    start_threads(&threads[COUNT(threads) - 1], 1, flush);
    for (int i = 0; i < FORKS; i++)
        IN_CHILD {
            free(malloc(3 * MB));
            free(malloc(50000));
        }
    stop_threads();
}
