// A hook in the code of libc's munmap, mremap and madvise, as RDMA libraries set it, sees each page that leaves its block
// qemu's user mode shows no page frames
#include "check.h"
#include <sys/uio.h>

#define PAGES 128

// The first page of each block, and the physical page behind it while the program had the block. As for a device, the
// kernel neither swaps nor migrates that page while a pipe refers to it.
static struct {
    char *at;
    uint64_t frame;
    int reported;
} pages[PAGES];
static int count, pins[2];

static void report(void *start, size_t bytes) {
    for (int i = 0; i < count; i++)
        if (pages[i].at >= (char *)start && pages[i].at < (char *)start + bytes) pages[i].reported = 1;
}

static int munmap_hook(void *start, size_t bytes) {
    report(start, bytes);
    return syscall(SYS_munmap, start, bytes);
}

static int madvise_hook(void *start, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE) report(start, bytes);
    return syscall(SYS_madvise, start, bytes, advice);
}

// As libfabric and UCX before 1.14 define it: with a new address it would go wrong.
static void *mremap_hook(void *start, size_t old_bytes, size_t bytes, int flags) {
    if (flags & MREMAP_FIXED) abort();
    report(start, old_bytes);
    return (void *)syscall(SYS_mremap, start, old_bytes, bytes, flags);
}

static void *mmap_hook(void *start, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if (flags & MAP_FIXED) report(start, bytes);
    return (void *)syscall(SYS_mmap, start, bytes, protection, flags, fd, offset);
}

static int brk_hook(void *end) {
    extern void *__curbrk; // libc's own variable
    char *old = __curbrk;
    if (old > (char *)end) report(end, (size_t)(old - (char *)end));
    __curbrk = (void *)syscall(SYS_brk, end);
    if (__curbrk >= end) return 0;
    errno = ENOMEM;
    return -1;
}

// Overwrites the start of a function of libc with a jump.
static void overwrite(const char *name, void *hook) {
    char *function = dlsym(RTLD_DEFAULT, name);
    uint64_t to = (uintptr_t)hook;
#ifdef __x86_64__
    unsigned char jump[13] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
    memcpy(jump + 2, &to, 8);
#else
    uint32_t jump[5];
    for (int i = 0; i < 4; i++)
        jump[i] = (i ? 0xf2800000u : 0xd2800000u) | (uint32_t)i << 21 | (uint32_t)(to >> 16 * i & 0xffff) << 5 | 15;
    jump[4] = 0xd61f0000u | 15 << 5;
#endif
    char *first = (char *)((uintptr_t)function & ~(uintptr_t)(PAGE - 1));
    size_t bytes = (size_t)(function - first) + sizeof jump;
    CHECK(mprotect(first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) == 0, "libc's code cannot be changed");
    memcpy(function, jump, sizeof jump);
    __builtin___clear_cache(function, function + sizeof jump);
    mprotect(first, bytes, PROT_READ | PROT_EXEC);
}

static uint64_t frame_of(char *at) {
    static int fd = -1;
    if (fd < 0) fd = open("/proc/self/pagemap", O_RDONLY);
    uint64_t entry = 0;
    if (pread(fd, &entry, 8, (off_t)((uintptr_t)at / PAGE * 8)) != 8) entry = 0;
    return entry & ((1ull << 55) - 1);
}

static char *registered(size_t bytes) {
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    char *page = (char *)(((uintptr_t)block + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    pages[count].at = page;
    CHECK(vmsplice(pins[1], &(struct iovec){page, 1}, 1, 0) == 1, "vmsplice: %s", strerror(errno));
    pages[count++].frame = frame_of(page);
    return block;
}

int main(void) {
    CHECK(mode_is("bare") || !statistic("recycler", "unmap_hooks"), "the library sees hooks before there are any");
    overwrite("mmap", (void *)mmap_hook);
    overwrite("munmap", (void *)munmap_hook);
    overwrite("mremap", (void *)mremap_hook);
    overwrite("madvise", (void *)madvise_hook);
    overwrite("brk", (void *)brk_hook);
    CHECK(mode_is("bare") || statistic("recycler", "unmap_hooks"), "the library does not see the hooks");
    const size_t sizes[] = {20000, 300000, 3 * MB, 24 * MB};
    for (int round = 0; round < 4; round++) {
        char *blocks[4][24];
        CHECK(pipe(pins) == 0 && fcntl(pins[1], F_SETPIPE_SZ, PAGES * PAGE) > 0, "pipe: %s", strerror(errno));
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = 0; i < (s < 3 ? 24 : 2); i++) blocks[s][i] = registered(sizes[s]);
        if (pages[0].frame == 0) SKIP("the kernel shows no page frames to this user");
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = 0; i < (s < 3 ? 24 : 2); i++) {
                if (i % 2) {
                    blocks[s][i] = realloc(blocks[s][i], 2 * sizes[s]);
                    memset(blocks[s][i], 2, 2 * sizes[s]);
                }
                free(blocks[s][i]);
            }
        // Other blocks take the pages of the freed ones, then all are returned.
        char *others[3];
        for (int i = 0; i < 3; i++) others[i] = memset(malloc(40 * MB), 3, 40 * MB);
        for (int i = 0; i < 3; i++) free(others[i]);
        if (round % 2) malloc_trim(0);
        for (int i = 0; i < count; i++)
            CHECK(pages[i].reported || frame_of(pages[i].at) == pages[i].frame, "round %d: page %d of %d left its block unseen", round, i, count);
        close(pins[0]);
        close(pins[1]);
        count = 0;
        memset(pages, 0, sizeof pages);
    }
}
