/* A program that links libc alone. Before glibc 2.34 it does not load libdl, which has the loader's functions. The library
 * finds the functions that run fork handlers with the loader. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);

static int prepared, in_child;
static void prepare(void) { prepared++; }
static void child(void) { in_child++; }

static int maps(const char *name) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, name) != NULL;
    if (maps) fclose(maps);
    return found;
}

int main(void) {
    int status = 0;
    if (__register_atfork(prepare, NULL, child, NULL) != 0) return 2;
    void *volatile block = malloc(8 << 20);
    memset(block, 1, 8 << 20);
    if (fork() == 0) _exit(prepared == 1 && in_child == 1 ? 7 : 3);
    wait(&status);
    free(block);
    printf("%s, libdl %s, its fork handlers %s\n", maps("libflarena") ? "preloaded" : "alone",
           maps("libdl") ? "is loaded" : "is not loaded",
           WIFEXITED(status) && WEXITSTATUS(status) == 7 ? "ran" : "did not run");
    return 0;
}
