// a process can fork while its threads read long lines with getline and flush all files
#include "check.h"
#include <stdatomic.h>

enum { LINES = 3, FORKS = 60 };
static atomic_int stop;

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

static void *read_lines(void *file) {
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
    return NULL;
}

static void *flush(void *unused) {
    while (!atomic_load(&stop))
        usleep(2000), fflush(NULL);
    return unused;
}

int main(void) {
    alarm(90); // a hang ends in a failure
    FILE *files[] = {lines(), lines(), lines()};
    pthread_t threads[COUNT(files) + 1];
    for (size_t i = 0; i < COUNT(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, i < COUNT(files) ? read_lines : flush, i < COUNT(files) ? files[i] : NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            free(malloc(3 * MB));
            free(malloc(50000));
            _exit(0);
        }
        CHECK_CHILD(pid);
    }
    atomic_store(&stop, 1);
    join_threads(threads, COUNT(threads));
}
