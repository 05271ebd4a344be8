// Trim gives back everything that no block needs, and says whether there was something
#include "recycler.h"

int main(void)
{
    char *kept = touched(3 * MIB, 1);
    long long before = status_bytes("VmRSS:");
    char *block = touched(300 * MIB, 2);
    free(block);
    CHECK(flarena_trim() == 1);
    CHECK(status_bytes("VmRSS:") < before + (long long)(4 * MIB));
    CHECK(recycler_number("cached_bytes") == 0 && recycler_number("slack_bytes") == 0);
    CHECK(kept[3 * MIB - 1] == 1);
    free(kept);
}
