/*
 * flarena.h - the C interface of libflarena.so
 *
 * The library is preloaded (LD_PRELOAD), so a program need not link with it: declare the functions
 * weak, as below, and test for NULL, or look them up with dlsym(RTLD_DEFAULT, ...).
 *
 * All functions may be called from any thread at any time, also after fork. None may be called
 * from a signal handler. Sizes are bytes; one MB in the text of a marker is 1024 * 1024 bytes.
 *
 * In a process that holds more than 64 MiB (or 32 MiB in large blocks, or 16 MiB of freed ones) the library has a thread. To
 * libc a program of one thread is then one of several, which fork treats otherwise: where glibc's malloc serves, libc locks its arenas
 * at a fork, and a signal handler that forks while the program is in the middle of a malloc or free can wait for
 * ever. FLARENA_GOVERNOR=off (no thread) or jemalloc avoids it.
 *
 * The library also exports malloc and its kin (C, POSIX, BSD, glibc and C23), with the meaning that
 * their standards give them, and, only where jemalloc serves the process, jemalloc's interface
 * (mallctl, mallctlnametomib, mallctlbymib, malloc_stats_print, mallocx, rallocx, xallocx, sallocx,
 * dallocx, sdallocx, nallocx). And prctl, which it passes on: a program that gives up privileges or sets
 * a seccomp list gets no thread of the library's, and no system call from malloc that glibc's does not make. Behind a list
 * that was there before the program (systemd's SystemCallFilter=), but for those of containers, the library makes no call
 * that such lists leave out; protection keys are taken off freed blocks there only after pkey_alloc, which it passes on, too.
 *
 * Invalid frees. A pointer to free, realloc or their kin that lies in memory of the library's recycler, and is not the
 * address of a large block in use, ends the process: a line on stderr names the address, then SIGABRT. This catches a
 * second free or a realloc of a freed large block while its memory is kept (FLARENA_DECAY_MS), a free of an address
 * inside a large block where that is a multiple of 64 KiB, and a realloc of one that is a multiple of 2 MiB or asks for
 * 64 KiB and more. Not caught, as nothing tells it from a valid call: a second free of an address that is the next
 * block's by then. What is not the recycler's is for the allocator that serves the process, as without the library.
 *
 * What a program did to its large block (madvise, mlock, mprotect, mbind, mmap over a part of it) does not reach the block's
 * next user. Three things are not always seen, and are for the program to undo before free: guards (MADV_GUARD_INSTALL) on a
 * block that lived for less than 4 ms per 2 MiB; a userfaultfd on exactly a multiple of 2 MiB from the block's start; and
 * pages that the kernel or a device still uses (vmsplice, MSG_ZEROCOPY, registered buffers). Whether mlockall(MCL_FUTURE) is
 * in force is asked once in 10 ms at most: a block freed sooner after that call may leave its memory unlocked.
 */
#ifndef FLARENA_H
#define FLARENA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FLARENA_WEAK __attribute__((weak))
#else
#define FLARENA_WEAK
#endif

/*
 * Returns all free memory to the system now: the recycler's cache, then the heap of the allocator
 * that serves, and the calling thread's own cache. Takes milliseconds for each 100 MB that goes
 * back (100-350 ms for each GB); other threads go on.
 *
 * Returns 1 when memory was released, 0 when there was nothing to release, -1 when it is not
 * available: another allocator serves this process. Does not set errno.
 */
int flarena_trim(void) FLARENA_WEAK;

/*
 * Emits one marker of the process's memory: a line on stderr,
 *     [RSS] TR s=site-1 r=3 send: 512.3 MB
 * and a JSON line in FLARENA_MARKER_FILE, where that is set. Does nothing, at the cost of a load and
 * a branch, unless NVFLARE_CLIENT_MEMORY_PROFILE is on. Where nobody set it, the first call says on stderr how to see
 * markers: in a process whose stderr is a terminal, and in the one that flarena run or sub_start.sh became.
 *
 * stage: name of the stage; NULL or "" means "mark". Up to 128 bytes are kept.
 * site:  name of the site; NULL or "" means the one found in the command line, if any.
 * round: number of the round, from 0; negative means none.
 *
 * Returns 0, also when markers are off; or -1 and errno when the marker file could not be written (the
 * line on stderr was written all the same), and without such a file when stderr could not be.
 * ENOTRECOVERABLE: the library met an error of its own, which it tells on stderr once.
 */
int flarena_mark(const char *stage, const char *site, long round) FLARENA_WEAK;

/*
 * Bytes of the large blocks (FLARENA_RECYCLE_MIN and more) that the program holds now: exact, and
 * some nanoseconds to ask. A garbage collector can count them instead of objects. 0 when the
 * recycler is off.
 */
size_t flarena_large_live_bytes(void) FLARENA_WEAK;

/*
 * Tells the library of one full garbage collection that has just ended: how much the large blocks
 * fell by, and how long it took. The next marker and the statistics tell it on. The Python package
 * calls this by itself.
 */
void flarena_note_collection(size_t released_bytes, unsigned long microseconds) FLARENA_WEAK;

/*
 * Tells the library what two pools beside malloc hold: Apache Arrow's, in use, and memory that is pinned for a GPU.
 * (size_t)-1: there is no such pool. The next markers and the statistics tell it on. The Python package calls this by
 * itself at each mark.
 */
void flarena_note_pools(size_t arrow_bytes, size_t pinned_bytes) FLARENA_WEAK;

/*
 * The allocator that serves this process, "glibc" or "jemalloc": a static string. The choice is made
 * by the first allocation and never changes.
 */
const char *flarena_allocator(void) FLARENA_WEAK;

/* The library's version, such as "0.1.0": a static string. */
const char *flarena_version(void) FLARENA_WEAK;

/*
 * Writes the statistics of the process as one JSON object, NUL-terminated and cut to len bytes.
 * Sources: /proc/self/status, the control group, and the allocator's own statistics; the cost does
 * not grow with the size of the process.
 *
 * Returns the number of bytes that the whole object needs without its NUL, like snprintf; buf may
 * be NULL when len is 0. The object was cut when the result is not less than len. It can grow
 * between two calls: leave some room. -1 when the library met an error of its own, as flarena_mark says.
 */
int flarena_stats_json(char *buf, size_t len) FLARENA_WEAK;

/*
 * Settings: environment variables, read once when the process starts.
 *
 * NVFLARE_ENABLE_JEMALLOC_PRELOAD   true: jemalloc serves this process, else glibc
 * FLARENA_ALLOCATOR                 the allocator by name; wins over NVFLARE_ENABLE_JEMALLOC_PRELOAD
 * FLARENA_ROLE                      sets the arena default; detected from NVFlare's command lines, else client
 * MALLOC_ARENA_MAX                  glibc arenas; your own value wins
 * MALLOC_CONF                       jemalloc options; your keys win over the defaults, key by key
 * NVFLARE_CLIENT_MEMORY_PROFILE     emit an RSS marker at each stage
 * FLARENA_MARKER_FILE               also append markers as JSON lines to this file
 * FLARENA_RECYCLE                   recycle the pages of large blocks, under both allocators
 * FLARENA_RECYCLE_MIN               the smallest block that the recycler serves
 * FLARENA_DECAY_MS                  how many milliseconds an unused recycled page is kept; auto: 300, and up to 5000 where pauses turn out that short
 * FLARENA_MEMORY_LIMIT              soft limit of the process: free memory is returned when less than a tenth of it is left (looked at every 2 s)
 * FLARENA_PRESSURE                  return memory when the kernel reports pressure (PSI, cgroup)
 * FLARENA_HUGE                      huge pages for large blocks; auto: those below 2 MB that the system gives on request (flarena doctor); 2M: of 2 MB, too
 * FLARENA_HIBERNATE                 after so many idle seconds page the program's large blocks out to swap, after as many more all else, and back when it works
 * FLARENA_GOVERNOR                  the library's thread, in processes that hold much; off: no thread, no control channel
 * FLARENA_SITES                     note which line of the program allocates each large block
 * FLARENA_GC                        collect Python's cyclic garbage by the bytes that it may hold, not by counting objects
 * FLARENA_POOLS                     keep small what is allocated beside malloc (Arrow, mimalloc, pinned memory); all: empty a GPU's cache, too
 * FLARENA_LOG                       what the library says on stderr; info prints the effective settings once
 *
 * Three more are the library's own and not for you to set: FLARENA_INHERITED tells children which
 * values are defaults, FLARENA_LAUNCHED which process a launcher became, FLARENA_PROBE makes a load test print the version
 * and exit.
 */

#ifdef __cplusplus
}
#endif

#endif
