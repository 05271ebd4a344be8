// attributes that the system refuses to reset reach neither the next block nor what realloc keeps
#include "vma_attributes.h"
#include "seccomp_filter.h"

static void refuse(unsigned advice) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install_hidden_filter(filter, COUNT(filter));
}

static char *malloc_advised(size_t size, int advice) {
    char *block = malloc(size);
    CHECK((uintptr_t)block % (2 * MB) == 0, "%p is not from the recycler", block);
    stamp_pages(block, size, 1);
    if (madvise(block, size, advice) != 0)
        SKIP("this kernel lacks this advice");
    return block;
}

static void check_in_child(char *block, size_t size, const char *what) {
    pid_t child = fork();
    if (child == 0) {
        CHECK(pages_match(block, size, 1), "%s", what);
        _exit(0);
    }
    CHECK_CHILD(child);
}

static void check_free(void) {
    refuse(MADV_DOFORK);
    for (int round = 0; round < 4; round++) {
        free(malloc_advised(8 * MB, MADV_DONTFORK));
        char *next = malloc(8 * MB);
        stamp_pages(next, 8 * MB, 1);
        check_in_child(next, 8 * MB, "a block in memory that had MADV_DONTFORK");
    }
}

static void check_shrink(void) {
    refuse(MADV_KEEPONFORK);
    for (int round = 0; round < 4; round++) {
        char *block = realloc(malloc_advised(8 * MB, MADV_DONTDUMP), 4 * MB);
        check_in_child(block, 4 * MB, "a block that realloc shrank");
        char *next = malloc(4 * MB);
        stamp_pages(next, 4 * MB, 1);
        check_in_child(next, 4 * MB, "a block in the memory that realloc cut off");
    }
}

// A filter cannot be removed, so the first part runs in a child.
int main(void) {
    int status;
    pid_t first = fork();
    if (first == 0) {
        check_free();
        _exit(0);
    }
    CHECK(waitpid(first, &status, 0) == first, "waitpid");
    if (status != 0)
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    check_shrink();
}
