// a forked child can start threads that allocate and fork again, four generations deep
#include "check.h"

static void *work(void *kept) {
    for (int i = 0; i < 20; i++) {
        char *block = malloc(3 * MB + (size_t)i * 1000);
        memset(block, i, 3 * MB);
        free(block);
        free(malloc(100));
    }
    return kept;
}

static void generation(int left) {
    alarm(120);
    pthread_t threads[4];
    void *held[30];
    for (size_t i = 0; i < COUNT(held); i++) {
        held[i] = malloc(4 * MB);
        memset(held[i], left, 4 * MB);
    }
    start_threads(threads, COUNT(threads), work);
    pid_t pid = left > 0 ? fork() : -1;
    if (pid == 0) {
        generation(left - 1);
        exit(0);
    }
    join_threads(threads, COUNT(threads));
    for (size_t i = 0; i < COUNT(held); i++) {
        CHECK(*((char *)held[i] + 4 * MB - 1) == left, "a held block changed");
        free(held[i]);
    }
    if (pid > 0)
        CHECK_CHILD(pid);
}

int main(void) {
    generation(4);
}
