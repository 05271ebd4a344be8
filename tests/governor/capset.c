// no thread keeps a capability that the program has given up by capset
#include "capabilities.h"

int capset(cap_user_header_t header, const cap_user_data_t sets);

// The permitted capabilities of all threads together.
static unsigned long long permitted(void) {
    unsigned long long all = 0;
    pid_t threads[MOST_LISTED];
    for (size_t count = list_numbers("/proc/self/task", threads, MOST_LISTED); count > 0; count--) {
        struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, threads[count - 1]};
        struct __user_cap_data_struct sets[2];
        if (syscall(SYS_capget, &header, sets) == 0)
            all |= sets[0].permitted | (unsigned long long)sets[1].permitted << 32;
    }
    return all;
}

int main(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0, 0, 0}, {0, 0, 0}};
    if (geteuid() != 0)
        SKIP("needs root to have capabilities");
    start_governor();
    sets[0].permitted = 1 << CAP_SETUID;
    CHECK(capset(&header, sets) == 0, "capset: %d", errno);
    CHECK(permitted() == 1 << CAP_SETUID, "a thread has the capabilities %llx", permitted());
    start_governor();
    CHECK(permitted() == 1 << CAP_SETUID, "the next governor has the capabilities %llx", permitted());
    // A program that only lowers and raises the effective set keeps its governor.
    sets[0].effective = 1 << CAP_SETUID;
    CHECK(capset(&header, sets) == 0, "capset: %d", errno);
    if (!mode_is("bare"))
        CHECK(count_threads("flarena") == 1, "the governor ended although nothing was given up");
}
