// in rounds out and in, with forks, realloc, free, mlock, mprotect, userfaultfd and trims in the middle, no byte is lost
#include "flarena.h"
#include "hibernate.h"
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define BLOCKS 12
#define SIZE (8 * MB)

static uint64_t *blocks[BLOCKS];
static size_t sizes[BLOCKS];
static uint64_t seeds[BLOCKS];

static void renew(int i, size_t bytes, uint64_t seed) {
    blocks[i] = random_block(bytes, seed);
    sizes[i] = bytes;
    seeds[i] = seed;
}

static void check_all(void) {
    for (int i = 0; i < BLOCKS; i++)
        check_words(blocks[i], sizes[i], seeds[i]);
}

static int faults_fd = -1;
static char *watched;

// Fills each missing page of `watched` with the page's number.
static void *serve_faults(void *unused) {
    (void)unused;
    static char page[1 << 16];
    struct uffd_msg message;
    while (read(faults_fd, &message, sizeof message) == sizeof message) {
        size_t at = message.arg.pagefault.address & ~(PAGE - 1);
        memset(page, (int)((at - (size_t)watched) / PAGE % 251 + 1), PAGE);
        struct uffdio_copy copy = {.dst = at, .src = (size_t)page, .len = PAGE};
        ioctl(faults_fd, UFFDIO_COPY, &copy);
    }
    return NULL;
}

static void watch(void) {
    faults_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    watched = malloc(4 * MB);
    watched = (char *)(((size_t)watched + PAGE - 1) & ~(PAGE - 1));
    CHECK(madvise(watched, 2 * MB, MADV_DONTNEED) == 0);
    struct uffdio_register range = {.range = {(size_t)watched, 2 * MB}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    pthread_t server;
    if (faults_fd < 0 || ioctl(faults_fd, UFFDIO_API, &api) != 0 || ioctl(faults_fd, UFFDIO_REGISTER, &range) != 0)
        watched = NULL;
    else
        CHECK(pthread_create(&server, NULL, serve_faults, NULL) == 0);
}

static void check_watched(void) {
    for (size_t at = 0; watched != NULL && at < 2 * MB; at += PAGE)
        CHECK(watched[at] == (char)(at / PAGE % 251 + 1), "page %zu of the watched range", at / PAGE);
}

static void disturb(int round) {
    int i = round % BLOCKS, j = (round + 3) % BLOCKS, k = (round + 6) % BLOCKS;
    pid_t child = -1;
    switch (round % 5) {
    case 0: // a child reads and writes
        child = fork();
        if (child == 0) {
            check_all();
            memset(blocks[i], 0, sizes[i]);
            _exit(0);
        }
        CHECK(await_child(child) == 0);
        break;
    case 1: // grows, then shrinks to the checked size
        blocks[i] = realloc(blocks[i], 3 * SIZE);
        CHECK(blocks[i] != NULL && (blocks[j] = realloc(blocks[j], SIZE / 2)) != NULL);
        sizes[j] = SIZE / 2;
        break;
    case 2: // freed in swap, and used again
        free(blocks[i]);
        renew(i, SIZE + (size_t)round * MB, (uint64_t)round);
        break;
    case 3: // a block without access, and a locked one
        CHECK(mprotect((char *)blocks[i] + 4096 * 4, MB, PROT_NONE) == 0 || errno == EINVAL);
        CHECK(mlock(blocks[k], MB) == 0 || errno == EPERM || errno == ENOMEM);
        sleep_ms(300);
        break;
    case 4:
        flarena_trim();
        madvise((void *)(((size_t)blocks[k] + PAGE - 1) & ~(PAGE - 1)), MB, 21 /* MADV_PAGEOUT */);
        break;
    }
}

static void undo(int round) {
    if (round % 5 == 3) {
        mprotect((char *)blocks[round % BLOCKS] + 4096 * 4, MB, PROT_READ | PROT_WRITE);
        munlock(blocks[(round + 6) % BLOCKS], MB);
    }
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    for (int i = 0; i < BLOCKS; i++)
        renew(i, SIZE, 100 + (uint64_t)i);
    watch();
    for (int round = 0; round < rounds; round++) {
        // Not each round reaches swap: it may be full.
        for (int tenth = 0; tenth < 40 && swapped_mb() < 40; tenth++)
            sleep_ms(100);
        disturb(round);
        check_watched();
        flarena_mark("receive", "site-1", round);
        sleep_ms(100);
        undo(round);
        check_all();
    }
    return 0;
}
