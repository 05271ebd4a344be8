// a block that is registered with io_uring stays in memory when the other blocks go to swap
#include "hibernate.h"
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

int main(void) {
    uint64_t *registered = random_block(64 * MB, 7), *other = random_block(64 * MB, 8);
    struct io_uring_params params = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
    struct iovec buffer = {registered, 64 * MB};
    if (ring < 0 || syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1) != 0)
        SKIP("io_uring is not available");
    await_swapped(60);
    sleep_ms(1000);
    check_resident(registered, 64 * MB);
    check_words(other, 64 * MB, 8);
    return 0;
}
