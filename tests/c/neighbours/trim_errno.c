// flarena_trim and malloc_trim preserve errno if a purge is refused
#include "check.h"
#include "seccomp_filter.h"

static void refuse_madvise(void) {
    struct sock_filter filter[] = {ANSWER_CALL(madvise, SECCOMP_RET_ERRNO | ENOMEM)};
    install_hidden_filter(filter, COUNT(filter));
}

static void check_trims(const char *when) {
    free_most(small_heap(8 * MB));
    errno = 4711;
    flarena_trim();
    CHECK(errno == 4711, "flarena_trim, %s: %s", when, strerror(errno));
    free_most(small_heap(8 * MB));
    errno = 4711;
    malloc_trim(0);
    CHECK(errno == 4711, "malloc_trim, %s: %s", when, strerror(errno));
}

int main(void) {
    check_trims("nothing refused");
    refuse_madvise();
    check_trims("madvise refused");
}
