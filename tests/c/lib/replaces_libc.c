// A library that replaces functions of libc, as libfaketime does. Each replacement allocates.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static __thread int is_inside;

static void allocate(void) {
    if (is_inside) return;
    is_inside = 1;
    free(malloc(100));
    free(realloc(calloc(1, 100), 1 << 20));
    is_inside = 0;
}

#define REPLACE(RESULT, NAME, PARAMETERS, ...)                                                                                     \
    RESULT NAME PARAMETERS {                                                                                                       \
        static RESULT(*next) PARAMETERS;                                                                                           \
        allocate();                                                                                                                \
        if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, #NAME);                                                               \
        return next(__VA_ARGS__);                                                                                                  \
    }

typedef pthread_mutex_t Mutex;
typedef pthread_cond_t Cond;
REPLACE(int, pthread_mutex_init, (Mutex * m, const pthread_mutexattr_t *a), m, a)
REPLACE(int, pthread_mutex_lock, (Mutex * m), m)
REPLACE(int, pthread_mutex_trylock, (Mutex * m), m)
REPLACE(int, pthread_mutex_unlock, (Mutex * m), m)
REPLACE(int, pthread_mutexattr_init, (pthread_mutexattr_t * a), a)
REPLACE(int, pthread_mutexattr_settype, (pthread_mutexattr_t * a, int type), a, type)
REPLACE(int, pthread_mutexattr_destroy, (pthread_mutexattr_t * a), a)
REPLACE(int, pthread_cond_init, (Cond *restrict c, const pthread_condattr_t *restrict a), c, a)
REPLACE(int, pthread_cond_signal, (Cond * c), c)
REPLACE(int, pthread_cond_wait, (Cond *restrict c, Mutex *restrict m), c, m)
REPLACE(int, pthread_cond_timedwait, (Cond *restrict c, Mutex *restrict m, const struct timespec *restrict t), c, m, t)
REPLACE(int, pthread_key_create, (pthread_key_t * k, void (*f)(void *)), k, f)
REPLACE(int, pthread_setspecific, (pthread_key_t k, const void *p), k, p)
REPLACE(int, pthread_join, (pthread_t t, void **result), t, result)
REPLACE(int, pthread_sigmask, (int how, const sigset_t *restrict set, sigset_t *restrict old), how, set, old)
REPLACE(int, pthread_setname_np, (pthread_t t, const char *name), t, name)
REPLACE(int, sigfillset, (sigset_t * set), set)
REPLACE(int, sched_getcpu, (void))
REPLACE(int, sched_yield, (void))
REPLACE(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *set), pid, size, set)
REPLACE(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set), pid, size, set)
REPLACE(int, clock_gettime, (clockid_t clock, struct timespec *t), clock, t)
REPLACE(int, gettimeofday, (struct timeval *restrict t, void *restrict zone), t, zone)
REPLACE(long, sysconf, (int name), name)
REPLACE(int, getrlimit, (__rlimit_resource_t resource, struct rlimit *limit), resource, limit)
REPLACE(pid_t, getpid, (void))
REPLACE(char *, secure_getenv, (const char *name), name)
REPLACE(ssize_t, readlink, (const char *restrict path, char *restrict buffer, size_t size), path, buffer, size)
REPLACE(void *, sbrk, (intptr_t increment), increment)
REPLACE(void *, mmap, (void *at, size_t size, int prot, int flags, int fd, off_t offset), at, size, prot, flags, fd, offset)
REPLACE(int, munmap, (void *at, size_t size), at, size)
REPLACE(int, mprotect, (void *at, size_t size, int prot), at, size, prot)
REPLACE(int, madvise, (void *at, size_t size, int advice), at, size, advice)
REPLACE(ssize_t, read, (int fd, void *buffer, size_t size), fd, buffer, size)
REPLACE(ssize_t, write, (int fd, const void *buffer, size_t size), fd, buffer, size)
REPLACE(int, close, (int fd), fd)

long syscall(long number, ...) {
    static long (*next)(long, ...);
    __builtin_va_list list;
    long a[6];
    __builtin_va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = __builtin_va_arg(list, long);
    __builtin_va_end(list);
    allocate();
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
