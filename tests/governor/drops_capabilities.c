// a process with a governor drops capabilities by a raw system call; then setgid and setuid fail, and it goes on
#include "capabilities.h"

int main(void) {
    if (geteuid() != 0)
        SKIP("needs root to have capabilities");
    start_governor();
    drop_capabilities();
    CHECK(setgid(1234) == -1 && errno == EPERM, "setgid: errno %d", errno);
    CHECK(setuid(1234) == -1 && errno == EPERM, "setuid: errno %d", errno);
    start_governor();
    CHECK(setuid(1234) == -1 && errno == EPERM, "setuid beside the next governor: errno %d", errno);
}
