// a seccomp list that kills and is put on all threads finds no thread of the library's that makes other calls
#include "check.h"
#include "seccomp_filter.h"

int main(void) {
    char *block = malloc_touched(100 * MB, 1);
    free(block);
    block = malloc_touched(100 * MB, 1);
    if (!mode_is("bare"))
        await_governor();
    install_malloc_filter(SECCOMP_FILTER_FLAG_TSYNC);
    // The clock is read without a call where it can be; where not the list has it.
    for (time_t end = time(NULL) + 6; time(NULL) < end;) {
        free(block);
        block = malloc_touched(100 * MB, 2);
    }
    free(block);
    malloc_trim(0);
}
