// a program with musl runs as without the preload
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *work(void *unused) {
    for (size_t size = 1; size < 64 << 20; size *= 3) {
        char *block = malloc(size);
        memset(block, 7, size);
        block = realloc(block, 2 * size);
        if (block[size - 1] != 7 || malloc_usable_size(block) < 2 * size) abort();
        free(block);
        block = calloc(size, 1);
        if (block[size - 1] != 0) abort();
        free(block);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    void *block = NULL;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
    work(NULL);
    pthread_join(thread, NULL);
    if (posix_memalign(&block, 1 << 20, 100) != 0 || (uintptr_t)block % (1 << 20) != 0) return 2;
    free(block);
    block = aligned_alloc(4096, 3 << 20);
    if (block == NULL || (uintptr_t)block % 4096 != 0) return 3;
    // Unlike glibc, musl returns a block.
    block = realloc(block, 0);
    if (block == NULL) return 4;
    free(block);
    free(strdup("text"));
    if (setgid(getgid()) != 0 || setuid(getuid()) != 0) return 5;
    void *program = dlopen(NULL, RTLD_LAZY);
    if (dlsym(program, "malloc") == NULL || dlclose(program) != 0) return 6;
    puts(getenv("LD_PRELOAD") != NULL ? "preloaded" : "bare");
}
