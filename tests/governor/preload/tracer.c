// A library: a tracer that replaces functions of libc, and allocates in each.
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int count;

static void record(void) {
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    for (size_t bytes = 100; bytes < 4 << 20; bytes *= 7) {
        char *entry = malloc(bytes);
        memset(entry, 1, bytes);
        free(entry);
    }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    record();
    return (int)syscall(SYS_clock_gettime, clock, time);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    record();
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

int munmap(void *at, size_t bytes) {
    record();
    return (int)syscall(SYS_munmap, at, bytes);
}

int mprotect(void *at, size_t bytes, int protection) {
    record();
    return (int)syscall(SYS_mprotect, at, bytes, protection);
}

int madvise(void *at, size_t bytes, int advice) {
    record();
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

long sysconf(int name) {
    record();
    return name == _SC_PAGESIZE ? (long)getauxval(AT_PAGESZ) : name == _SC_NPROCESSORS_ONLN ? 2 : -1;
}

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit) {
    record();
    return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
}

int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *cpus) {
    record();
    memset(cpus, 0, bytes);
    return syscall(SYS_sched_getaffinity, thread, bytes, cpus) < 0 ? -1 : 0;
}

int traced_calls(void) {
    return __atomic_load_n(&count, __ATOMIC_RELAXED);
}
