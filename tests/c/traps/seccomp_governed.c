// a seccomp filter that kills and is installed for all threads (TSYNC) does not hit the governor
#include "seccomp_filter.h"

int main(void) {
    char *block = malloc_touched(100 * MB, 1);
    free(block);
    block = malloc_touched(100 * MB, 1);
    if (!mode_is("bare"))
        await_governor();
    install_malloc_filter(SECCOMP_FILTER_FLAG_TSYNC);
    // The vDSO reads the clock without a system call; where it cannot, the filter allows the call.
    for (time_t end = time(NULL) + 6; time(NULL) < end;) {
        free(block);
        block = malloc_touched(100 * MB, 2);
    }
    free(block);
    malloc_trim(0);
}
