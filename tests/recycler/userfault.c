// a userfaultfd registration that a program left on its block does not block the next user
#include "vma_attributes.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

int main(void) {
    struct uffdio_api api = {.api = UFFD_API};
    int fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fault < 0 || ioctl(fault, UFFDIO_API, &api) != 0)
        SKIP("this user may not create a userfaultfd");
    const size_t sizes[] = {3 * MB / 2, 3 * MB, 5 * MB + 5000, 9 * MB + 5000};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int place = 0; place < PLACES; place++)
            for (int resized = 0; resized < 3; resized++) {
                alarm(60); // a fault in a registered range would wait forever
                const size_t to[] = {sizes[s], sizes[s] * 3 / 4, sizes[s] * 2};
                char *start, *block = malloc(sizes[s]), *others[3];
                size_t length;
                select_part(block, sizes[s], place, &start, &length);
                struct uffdio_register range = {{(uintptr_t)start, length}, UFFDIO_REGISTER_MODE_MISSING, 0};
                madvise(start, length, MADV_DONTNEED);
                CHECK(ioctl(fault, UFFDIO_REGISTER, &range) == 0, "register: %s", strerror(errno));
                if (resized == 1)
                    block = realloc(block, to[resized]);
                free(block);
                for (size_t i = 0; i < COUNT(others); i++)
                    others[i] = malloc_touched(to[resized], 2);
                for (size_t i = 0; i < COUNT(others); i++)
                    free(others[i]);
            }
    CHECK(statistic("recycler", "fresh_bytes_total") > 0, "no block came from the recycler");
}
