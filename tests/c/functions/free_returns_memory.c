// freed blocks are reused: a million allocations of each small size and a GB of each large one leave less than 128 MB resident
#include "check.h"

int main(void) {
    for (size_t i = 0; i < COUNT(SIZES); i++)
        for (size_t passed = 0; passed < 1 * GB; passed += SIZES[i] > 4096 ? SIZES[i] : 4096) {
            char *block = malloc(SIZES[i]);
            CHECK(block != NULL, "malloc(%zu)", SIZES[i]);
            for (size_t at = 0; at < SIZES[i]; at += 64 * KB)
                block[at] = 1;
            free(block);
        }
    CHECK(rss_bytes() < (long)(128 * MB), "%ld bytes resident", rss_bytes());
}
