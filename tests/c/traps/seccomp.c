// behind a seccomp filter that kills at other calls, the malloc family makes only the system calls of glibc's malloc
#include "seccomp_filter.h"

int main(void) {
    install_malloc_filter(0);
    use_malloc_family(100);
    use_malloc_family(70 * KB);
    use_malloc_family(3 * MB);
    use_malloc_family(3 * MB);
    // Enough small blocks to start a governor.
    free_most(small_heap(150 * MB));
    use_malloc_family(8 * MB);
}
