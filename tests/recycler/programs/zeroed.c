// calloc of recycled pages reads as zero, and does not fill the pages that nobody touched
#include "recycler.h"

int main(void)
{
    char *dirty = touched(64 * MIB, 7);
    free(dirty);
    char *clean = calloc(1, 64 * MIB);
    CHECK(clean != NULL);
    for (size_t at = 0; at < 64 * MIB; at += 512)
        CHECK(clean[at] == 0);
    free(clean);
    flarena_trim();

    char *sparse = malloc(256 * MIB);
    sparse[0] = 1;
    free(sparse);
    long long resident = status_bytes("VmRSS:");
    char *again = calloc(1, 256 * MIB);
    CHECK(again[0] == 0 && again[255 * MIB] == 0);
    CHECK(status_bytes("VmRSS:") < resident + (long long)(16 * MIB));
    free(again);
}
