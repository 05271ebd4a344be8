// Under an address space limit malloc fails with ENOMEM at the very end, and works again after free
#include "recycler.h"
#include <sys/resource.h>

int main(void)
{
    struct rlimit limit = {700 * MIB, 700 * MIB};
    char *blocks[400];
    int count = 0;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (int round = 0; round < 5; round++) {
        size_t size = (3 + (size_t)round * 2) * MIB;
        errno = 0;
        while (count < 400 && (blocks[count] = malloc(size)) != NULL)
            touch(blocks[count++], size, 1);
        CHECK(count < 400 && errno == ENOMEM);
        CHECK((size_t)count * size > 450 * MIB);
        while (count > 0)
            free(blocks[--count]);
    }
}
