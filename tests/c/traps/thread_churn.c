// 1200 threads that use thread-local buffers of libc and end leave less than 6 MB behind
// qemu's user mode keeps memory for each thread that has ended
#include "check.h"

static void *work(void *unused) {
    char text[64];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(text, sizeof text, "%c", &local);
    free(strdup(strerror(ENOENT)));
    for (int i = 0; i < 50; i++)
        free(malloc((size_t)i * 100 + 1));
    free(malloc(2 * MB));
    return unused;
}

static void generation(void) {
    pthread_t threads[20];
    start_threads(threads, COUNT(threads), work);
    join_threads(threads, COUNT(threads));
}

int main(void) {
    for (int i = 0; i < 20; i++)
        generation();
    long before = rss_bytes();
    for (int i = 0; i < 60; i++)
        generation();
    CHECK(rss_bytes() - before < (long)(6 * MB), "%ld bytes resident before, %ld after 1200 more threads", before, rss_bytes());
}
