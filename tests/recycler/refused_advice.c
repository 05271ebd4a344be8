// marks that the system refuses to take off reach no next user, and realloc leaves none on what it keeps
#include "marks.h"
#include "seccomp_filter.h"

static void refuse(unsigned advice) {
    struct sock_filter list[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install_hidden_filter(list, COUNT(list));
}

static char *marked(size_t size, int advice) {
    char *block = malloc(size);
    CHECK((uintptr_t)block % (2 * MB) == 0, "%p is not the recycler's", block);
    stamp_pages(block, size, 1);
    if (madvise(block, size, advice) != 0)
        SKIP("this kernel knows no such mark");
    return block;
}

static void check_in_child(char *block, size_t size, const char *what) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(pages_match(block, size, 1) ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "%s: a child ended with status %#x", what, status);
}

static void hand_on(void) {
    refuse(MADV_DOFORK);
    for (int round = 0; round < 4; round++) {
        free(marked(8 * MB, MADV_DONTFORK));
        char *next = malloc(8 * MB);
        stamp_pages(next, 8 * MB, 1);
        check_in_child(next, 8 * MB, "the next user of a block with MADV_DONTFORK");
    }
}

static void cut(void) {
    refuse(MADV_KEEPONFORK);
    for (int round = 0; round < 4; round++) {
        char *block = realloc(marked(8 * MB, MADV_DONTDUMP), 4 * MB);
        check_in_child(block, 4 * MB, "a block that realloc cut");
        char *next = malloc(4 * MB);
        stamp_pages(next, 4 * MB, 1);
        check_in_child(next, 4 * MB, "the next user of what realloc cut off");
    }
}

// A list is for ever.
int main(void) {
    int status;
    pid_t first = fork();
    if (first == 0) {
        hand_on();
        _exit(0);
    }
    CHECK(waitpid(first, &status, 0) == first, "waitpid");
    if (status != 0)
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    cut();
}
