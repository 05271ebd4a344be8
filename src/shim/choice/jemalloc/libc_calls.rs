//! Calls of jemalloc's that are answered here: the linker leads them to us from all of its objects (`--wrap` in
//! build.rs).
//!
//! Every Rust program that embeds jemalloc reads the variable `_RJEM_MALLOC_CONF` and the link
//! `/etc/_rjem_malloc.conf`, and some set the variable for all their children (polars does). Ours has
//! its options from `options` alone. It also registers fork handlers, even in a process that glibc
//! serves, where they take locks that nobody needs: a fork in a signal handler then hangs. `choice::fork` calls
//! them where they are needed.
//!
//! It crashes where a new thread's first allocation finds no memory for an arena of its own. Its free leaves the
//! errno of whatever the kernel refused on the way; free must leave the caller's. It wakes by its constructor, also where glibc
//! serves. And it calls by name, with its locks held,
//! what another library of the process may have put its own function in the place of: one that allocates never returns.

use flarena_sys::errno;
use flarena_sys::errno::SavedErrno;
use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed};

use super::fork::{self, Handler};
use super::ASLEEP;
use flarena_sys::clock;
use flarena_sys::loader::objects;
use flarena_sys::proc::procfs;

extern "C" {
    fn __real__rjem_je_arena_choose_hard(thread: *mut c_void, internal: bool) -> *mut c_void;
    fn __real__rjem_je_pages_boot() -> bool;
    fn __real_sysconf(name: c_int) -> c_long;
    fn _rjem_je_arena_nthreads_inc(arena: *mut c_void, internal: bool);
    fn _rjem_je_arena_migrate(thread: *mut c_void, from: *mut c_void, to: *mut c_void);
    /// The first of some thousands; it exists from the start.
    static _rjem_je_arenas: AtomicPtr<c_void>;
}

/// No variable: neither jemalloc nor anything else in this library has business with one by this way.
unsafe extern "C" fn secure_getenv(_name: *const c_char) -> *mut c_char {
    ptr::null_mut()
}

/// jemalloc's link does not exist; all others are read.
unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, len: usize) -> isize {
    // SAFETY: readlink's contract makes it NUL-terminated.
    if unsafe { CStr::from_ptr(path) } == c"/etc/_rjem_malloc.conf" {
        errno::set(libc::ENOENT);
        return -1;
    }
    // SAFETY: the arguments are readlink's own; AT_FDCWD makes them mean the same here.
    unsafe { libc::readlinkat(libc::AT_FDCWD, path, buffer, len) }
}

unsafe extern "C" fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int {
    fork::keep([prepare, parent, child]);
    0
}

/// The first of what jemalloc does when it wakes that may fail, and then it does no more.
unsafe extern "C" fn pages_boot() -> bool {
    // SAFETY: jemalloc's own, which has no argument.
    ASLEEP.load(Relaxed) || unsafe { __real__rjem_je_pages_boot() }
}

/// Where jemalloc 5.3.1 keeps a thread's shard of each bin (`offsetof(tsd_t, ..._binshards)` with its headers): the same on
/// x86-64 and aarch64, with pages of every size.
const SHARDS_AT: usize = 217;
/// With pages of 4 KiB; more with larger ones.
const SHARDS: usize = 36;

/// A thread without an arena has no shards either: the first says 255, as a sign. Only what binds a thread by
/// itself takes that away, and a free would then look for the smallest blocks' slabs where none are.
///
/// # Safety
/// The thread's own structure.
unsafe fn bind_shards(thread: *mut c_void) {
    // SAFETY: both numbers are of the structure, which is far larger.
    let shards =
        unsafe { std::slice::from_raw_parts_mut(thread.cast::<u8>().add(SHARDS_AT), SHARDS) };
    if let [first @ u8::MAX, rest @ ..] = shards {
        if rest.iter().all(|&shard| shard == 0) {
            *first = 0;
        }
    }
}

/// The arena of a thread that has none yet. Where there is no memory for a new one the thread shares the
/// first: jemalloc would go on with a null pointer.
unsafe extern "C" fn arena_choose_hard(thread: *mut c_void, internal: bool) -> *mut c_void {
    // SAFETY: the arguments are arena_choose_hard's own.
    let chosen = unsafe { __real__rjem_je_arena_choose_hard(thread, internal) };
    if !chosen.is_null() {
        return chosen;
    }
    // SAFETY: arena 0 is made before any thread asks for one. Migrating from it to itself binds the thread
    // and leaves its count of threads alone, which is therefore raised before.
    unsafe {
        let first = _rjem_je_arenas.load(Acquire);
        _rjem_je_arena_nthreads_inc(first, internal);
        if !internal {
            _rjem_je_arena_migrate(thread, first, first);
            bind_shards(thread);
        }
        first
    }
}

// By the kernel's own calls, or libc's: who stands in their place may allocate, and jemalloc holds its locks. What malloc
// must set at a refusal jemalloc sets by itself. The linker leads the standard library here, too.

unsafe extern "C" fn mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let _errno = SavedErrno::save();
    // SAFETY: the arguments are mmap's own.
    unsafe { libc::syscall(libc::SYS_mmap, at, len, protection, flags, fd, offset) as *mut c_void }
}

unsafe extern "C" fn munmap(start: *mut c_void, len: usize) -> c_int {
    let _errno = SavedErrno::save();
    // SAFETY: the arguments are munmap's own.
    unsafe { libc::syscall(libc::SYS_munmap, start, len) as c_int }
}

unsafe extern "C" fn mprotect(start: *mut c_void, len: usize, protection: c_int) -> c_int {
    let _errno = SavedErrno::save();
    // SAFETY: the arguments are mprotect's own.
    unsafe { libc::syscall(libc::SYS_mprotect, start, len, protection) as c_int }
}

unsafe extern "C" fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int {
    let _errno = SavedErrno::save();
    // SAFETY: the arguments are madvise's own.
    unsafe { libc::syscall(libc::SYS_madvise, start, len, advice) as c_int }
}

unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    // SAFETY: the arguments are clock_gettime's own.
    unsafe { clock::gettime(clock, time) }
}

unsafe extern "C" fn sysconf(name: c_int) -> c_long {
    match name {
        libc::_SC_PAGESIZE => procfs::page_bytes() as c_long,
        // SAFETY: the argument is sysconf's own.
        _ => unsafe { __real_sysconf(name) },
    }
}

/// jemalloc asks for `pthread_create`, and the standard library for what an old libc has not. Neither asks for what has no
/// place in libc.
unsafe extern "C" fn dlsym(_handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: dlsym's contract makes it NUL-terminated.
    objects::in_libc(unsafe { CStr::from_ptr(name) }).cast_mut()
}

/// The unwinder of the portable build would ask it for a function's name, which nobody here wants.
unsafe extern "C" fn dladdr(_address: *const c_void, _found: *mut libc::Dl_info) -> c_int {
    0
}

unsafe extern "C" fn sched_getaffinity(thread: c_int, len: usize, cpus: *mut c_void) -> c_int {
    // SAFETY: the arguments are sched_getaffinity's own.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, len, cpus) };
    let Ok(written) = usize::try_from(written) else {
        return -1;
    };
    // SAFETY: the kernel wrote so much of the set, which has `len` bytes.
    unsafe { cpus.cast::<u8>().add(written).write_bytes(0, len - written) };
    0
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {}"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {}"
    };
}

// Hidden, unlike a `no_mangle` function: nobody outside may find these names.
macro_rules! answer {
    ($name:literal, $function:path) => {
        std::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            jump!(),
            sym $function
        );
    };
}

answer!("__wrap_secure_getenv", secure_getenv);
answer!("__wrap_readlink", readlink);
answer!("__wrap_pthread_atfork", pthread_atfork);
answer!("__wrap_mmap", mmap);
answer!("__wrap_munmap", munmap);
answer!("__wrap_mprotect", mprotect);
answer!("__wrap_madvise", madvise);
answer!("__wrap_clock_gettime", clock_gettime);
answer!("__wrap_sysconf", sysconf);
answer!("__wrap_sched_getaffinity", sched_getaffinity);
answer!("__wrap_dlsym", dlsym);
answer!("__wrap_dladdr", dladdr);
answer!("__wrap__rjem_je_pages_boot", pages_boot);
answer!("__wrap__rjem_je_arena_choose_hard", arena_choose_hard);
