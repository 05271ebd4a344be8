/*
 * flarena.h - the C interface of libflarena.so
 *
 * The library is preloaded (LD_PRELOAD), so a program need not link with it. The functions below are
 * declared weak: test for NULL before a call, or look them up with dlsym(RTLD_DEFAULT, ...).
 *
 * Threads: every function may be called from any thread at any time, also after fork. None may be
 * called from a signal handler.
 * Stack: every function works in a thread with the smallest stack that Linux allows, 16 KiB. In jemalloc
 * mode malloc_stats needs 28 KiB.
 * Units: sizes are bytes. One MB in the text of a marker is 1024 * 1024 bytes.
 * errno: a function changes it only where its description says so.
 *
 * Other exports. The library exports the malloc family (C, POSIX, BSD, glibc and C23) as the standards
 * define it. In jemalloc mode it also exports jemalloc's interface: mallctl, mallctlnametomib,
 * mallctlbymib, malloc_stats_print, mallocx, rallocx, xallocx, sallocx, dallocx, sdallocx, nallocx.
 *
 * Seccomp. The library forwards prctl and pkey_alloc, to see when a program gives up privileges or
 * installs a seccomp filter. Before the call it ends its own thread. After it, it starts no thread, and malloc makes no
 * system call that glibc's malloc does not make. Behind a filter that was there before the program (systemd's
 * SystemCallFilter=), except in containers, it makes no call that such filters usually leave out, and
 * resets protection keys of freed blocks only after a pkey_alloc.
 *
 * Credentials. The library forwards setuid and its kin, setgroups, initgroups, capset, unshare and setns.
 * If its own thread has other capabilities than the caller, or is the only other thread of a process that
 * changes its namespaces, it ends the thread first and starts another later. Where unshare or setns is made by
 * syscall(), the kernel may refuse it because of that thread.
 *
 * Libraries. The library forwards dlclose, which waits until the governor uses no code of other
 * libraries. The library keeps none of them loaded.
 *
 * Background thread. In a process that holds tens of megabytes the library starts a thread, the
 * governor (docs/glossary.md has the sizes). libc then treats fork in a program of one thread as in one
 * of several: in glibc mode it locks the arenas. A signal handler that forks in the middle of a malloc
 * or free can then wait forever. FLARENA_GOVERNOR=off or jemalloc mode avoids this.
 *
 * Invalid frees. A pointer into the recycler's memory that is not the address of a live large block
 * ends the process when it is passed to free, realloc or their kin: a line on stderr names the
 * address, then SIGABRT. This detects
 *   - a second free, or a realloc, of a freed large block while its pages are cached;
 *   - a free of an address inside a large block, in the first 4 KiB after a multiple of 512 KiB;
 *   - a realloc of an address inside a large block, if the address is a multiple of 2 MiB or the new
 *     size is 64 KiB or more.
 * A second free is not detected if the address already belongs to the next block. All other pointers go
 * to the allocator of the mode.
 *
 * Changes to a large block (madvise, mlock, mprotect, mbind, a mapping over a part of it) do not reach
 * the next block. The program must undo three of them before free, because the library may miss them:
 *   - MADV_GUARD_INSTALL on a block that lived for less than a second, or less than 4 ms per 2 MiB;
 *   - a userfaultfd that begins at an exact multiple of 2 MiB from the start of the block;
 *   - use of its pages by the kernel or a device (vmsplice, MSG_ZEROCOPY, registered buffers).
 * A block freed within 10 ms after mlockall(MCL_FUTURE) may leave its memory unlocked.
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
 * Returns all free memory to the system: the recycler's cache, the free memory of the backend's heap,
 * and the calling thread's cache. Takes 100 to 350 ms for each GB returned; other threads continue.
 *
 * Returns 1 if memory was released, 0 if there was none to release, and -1 if another allocator serves
 * this process. Source: the change of the resident size; without /proc, the answers of the allocators.
 */
int flarena_trim(void) FLARENA_WEAK;

/*
 * Writes one marker: a line on stderr,
 *     [RSS] TR s=site-1 r=3 send: 512.3 MB
 * and a JSON line in FLARENA_MARKER_FILE, if that is set. Does nothing, at the cost of a load and a
 * branch, unless NVFLARE_CLIENT_MEMORY_PROFILE is on. If that variable is not set, the first call says
 * on stderr how to turn markers on: in a process whose stderr is a terminal, and in the process that
 * flarena run or sub_start.sh started.
 *
 * stage: name of the stage; NULL or "" means "mark". Up to 128 bytes are kept.
 * site:  name of the site; NULL or "" means the one from the command line, if any.
 * round: number of the round, from 0; negative means none.
 *
 * Returns 0, also if markers are off. Returns -1 and sets errno if the marker was not written: to the
 * marker file if that is set (the line on stderr is still written), else to stderr. ENOTRECOVERABLE is
 * an internal error of the library; one line on stderr names it.
 * Source: /proc/self, the control group, and the counters of recycler and backend.
 */
int flarena_mark(const char *stage, const char *site, long round) FLARENA_WEAK;

/*
 * Like flarena_mark, and also copies the line of stderr to `line`, without its newline and cut to size - 1
 * bytes: "[RSS] TR s=site-1 r=3 send: 512.3 MB". The copy is empty if markers are off. The Python package
 * calls it to add the line to NVFlare's logs.
 */
int flarena_mark_and_copy(const char *stage, const char *site, long round, char *line, size_t size) FLARENA_WEAK;

/*
 * Returns the bytes of live large blocks (FLARENA_RECYCLE_MIN and more), or 0 if the recycler is off.
 * Source: a counter of the recycler; exact, and read in some nanoseconds. A garbage collector can use
 * it to decide by bytes when to collect.
 */
size_t flarena_large_live_bytes(void) FLARENA_WEAK;

/*
 * Records the bytes of two pools beside malloc: in use in Apache Arrow's pool, and pinned for a GPU.
 * (size_t)-1 means that there is no such pool. The following markers and the statistics contain the
 * values. Never fails. The Python package calls it at each marker.
 */
void flarena_note_pools(size_t arrow_bytes, size_t pinned_bytes) FLARENA_WEAK;

/*
 * Records the memory of PyTorch on all GPUs: in tensors, and held by its caching allocator, which contains
 * them. (size_t)-1 means that PyTorch has not started CUDA. The following markers and the statistics contain the
 * values; a forked child forgets them. Never fails. The Python package calls it at each marker.
 */
void flarena_note_gpu(size_t allocated_bytes, size_t reserved_bytes) FLARENA_WEAK;

/*
 * Notes the id of the job whose model this process has received. If it is a UUID, as NVFlare's ids are, markers
 * contain its first 8 characters; no other text is kept. NULL: unknown. Never fails. The Python package calls it.
 */
void flarena_note_job(const char *id) FLARENA_WEAK;

/*
 * Notes that this process receives models by NVFlare's client API, so that markers and statistics call
 * it TR, and its later forks TR workers. Never fails. The Python package calls it.
 */
void flarena_note_trainer(void) FLARENA_WEAK;

/*
 * Returns the allocator of this process, "glibc" or "jemalloc", as a static string. The first
 * allocation of the process decides; the answer never changes. Never fails.
 */
const char *flarena_allocator(void) FLARENA_WEAK;

/* Returns the library's version, such as "0.1.0", as a static string. Never fails. */
const char *flarena_version(void) FLARENA_WEAK;

/*
 * Writes the statistics of the process as one JSON object into buf, cut to len bytes with its NUL.
 * buf may be NULL if len is 0.
 *
 * Returns the length of the whole object without its NUL, like snprintf. The object was cut if the
 * result is not less than len. It can grow between two calls: leave some room. Returns -1 and sets errno to
 * ENOTRECOVERABLE on an internal error of the library.
 * Source: /proc/self/status, the control group, and the statistics of the allocators. The cost does not
 * depend on the size of the process.
 */
int flarena_stats_json(char *buf, size_t len) FLARENA_WEAK;

/*
 * Settings: environment variables, read once when the process starts.
 *
 * NVFLARE_ENABLE_JEMALLOC_PRELOAD   true: jemalloc serves this process; false: glibc
 * FLARENA_ALLOCATOR                 the allocator by name; overrides NVFLARE_ENABLE_JEMALLOC_PRELOAD
 * FLARENA_ROLE                      selects the arena default; detected from NVFlare's command lines, else client
 * MALLOC_ARENA_MAX                  number of glibc arenas; flarena keeps a value that you set
 * MALLOC_CONF                       jemalloc options; each key that you set replaces its default
 * NVFLARE_CLIENT_MEMORY_PROFILE     write an RSS marker at each stage
 * FLARENA_MARKER_FILE               also append markers as JSON lines to this file
 * FLARENA_NAME                      the name of this process in markers and commands; a program that it starts is NAME/program, a fork NAME/worker
 * FLARENA_RECYCLE                   reuse the pages of freed large blocks, with both allocators
 * FLARENA_RECYCLE_MIN               the smallest block that the recycler serves
 * FLARENA_DECAY_MS                  how many milliseconds the recycler keeps an unused page
 * FLARENA_MEMORY_LIMIT              soft limit: the process returns free memory when less than a tenth of it is left, and at the large allocation that would cross it
 * FLARENA_AT_LIMIT                  an allocation of 1 MB or more that cannot fit below the memory limit of the control group; warn: one line names it; fail: it also fails with ENOMEM (MemoryError in Python), and spares room for the rest of the group
 * FLARENA_PRESSURE                  return free memory when the kernel reports memory pressure (PSI, cgroup)
 * FLARENA_HUGE                      huge pages for large blocks; auto: sizes below 2 MB that the system gives on request (see flarena doctor --all); 2M: also 2 MB
 * FLARENA_GOVERNOR                  background thread in processes that hold much memory; off: no thread and no control channel
 * FLARENA_SITES                     record which line of the program allocates each large block, and a sample of the small ones
 * FLARENA_SITES_SAMPLE              with FLARENA_SITES: sample one small block per this many allocated bytes; off: large blocks only
 * FLARENA_GC                        run Python's garbage collector when large blocks have grown, not only by the number of objects
 * NVFLARE_CLIENT_MEMORY_GC_ROUNDS   an NVFlare client collects garbage and returns free memory after every so many results; 0: never
 * NVFLARE_CUDA_EMPTY_CACHE          true: the cleanup of NVFLARE_CLIENT_MEMORY_GC_ROUNDS also empties PyTorch's CUDA cache
 * FLARENA_POOLS                     return the free memory of pools beside malloc (Arrow, PyTorch's pinned memory)
 * FLARENA_LOG                       messages of the library on stderr; info also prints the effective settings once
 *
 * The library and its launchers set three more; do not set them yourself: FLARENA_INHERITED (which values
 * are defaults, for child processes), FLARENA_LAUNCHED (the pid of a launched process), and
 * FLARENA_PROBE (print the version and exit, to test whether the library loads).
 */

#ifdef __cplusplus
}
#endif

#endif
