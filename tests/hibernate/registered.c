// a block that is registered with the kernel (io_uring) stays while the others go out
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
        SKIP("no io_uring here");
    await_out(60);
    sleep_ms(1000);
    is_resident(registered, 64 * MB);
    holds(other, 64 * MB, 8);
    return 0;
}
