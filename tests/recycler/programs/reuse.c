// A freed large block serves the next one of its size without a fresh page
#include "recycler.h"

int main(void)
{
    char *first = touched(6 * MIB, 1);
    CHECK(is_large(first));
    free(first);
    long long fresh = recycler_number("fresh_bytes_total");
    char *second = touched(6 * MIB, 2);
    CHECK(second == first);
    CHECK(recycler_number("fresh_bytes_total") == fresh);
    CHECK(recycler_number("recycled_bytes_total") >= (long long)(6 * MIB));
    free(second);
}
