// Where mappings run out (vm.max_map_count) allocation goes on
#include "recycler.h"

int main(void)
{
    enum { COUNT = 70000 };
    char *pages = mmap(NULL, (size_t)COUNT * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    int last = 0;
    while (last < COUNT &&
           mprotect(pages + (size_t)last * 4096, 4096, PROT_READ | PROT_WRITE) == 0)
        last += 2;
    // Some are left, so that the first blocks can be had; moves and splits soon meet the limit.
    for (int i = 2; i < 80; i += 2)
        mprotect(pages + (size_t)(last - i) * 4096, 4096, PROT_READ);
    char *blocks[60];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 60; i++)
            blocks[i] = touched((size_t)(1 + (i * 7 + round) % 9) * MIB + 1, (char)i);
        for (int i = 0; i < 60; i++) {
            CHECK(blocks[i][0] == (char)i);
            free(blocks[i]);
        }
    }
}
