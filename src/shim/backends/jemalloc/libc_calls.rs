//! Replacements for functions that the embedded jemalloc calls; `--wrap` in build.rs redirects the calls. They fix:
//!
//! - **Options**: any Rust program with jemalloc reads `_RJEM_MALLOC_CONF` and `/etc/_rjem_malloc.conf`, and some set the
//!   variable for their children. This jemalloc has its options from `options` only.
//! - **Fork handlers**: in glibc mode they would take unneeded locks, and a fork in a signal handler would hang.
//!   `backends::fork` calls them where they are needed.
//! - **No memory for an arena**: the first allocation of a new thread would crash.
//! - **errno**: a free would leave the error of a refused system call.
//! - **Refused mappings**: the recycler may hold the memory that jemalloc needs. Its lock is taken after jemalloc's,
//!   never before.
//! - **Interposed functions**: jemalloc calls libc by name with its locks held. Another library may define the
//!   function, and one that allocates would deadlock.

use flarena_recycler as recycler;
use flarena_sys::errno;
use flarena_sys::errno::SavedErrno;
use std::ffi::{c_char, c_int, c_long, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed};

use super::fork::{self, Handler};
use super::INIT_DISABLED;
use flarena_sys::clock;
use flarena_sys::loader::objects;
use flarena_sys::proc::procfs;
use flarena_sys::unmap_hooks;

unsafe extern "C" {
    fn __real__rjem_je_arena_choose_hard(thread: *mut c_void, internal: bool) -> *mut c_void;
    fn __real__rjem_je_pages_boot() -> bool;
    fn __real_sysconf(name: c_int) -> c_long;
    fn _rjem_je_arena_nthreads_inc(arena: *mut c_void, internal: bool);
    fn _rjem_je_arena_migrate(thread: *mut c_void, from: *mut c_void, to: *mut c_void);
    /// Arena 0, the first of some thousands; it exists from the start.
    static _rjem_je_arenas: AtomicPtr<c_void>;
}

/// Reports every variable as unset. Only jemalloc calls this function here.
unsafe extern "C" fn secure_getenv(_name: *const c_char) -> *mut c_char {
    ptr::null_mut()
}

/// Reports jemalloc's link as missing; reads all others.
unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, len: usize) -> isize {
    // SAFETY: the path is NUL-terminated by readlink's contract.
    if unsafe { CStr::from_ptr(path) } == c"/etc/_rjem_malloc.conf" {
        errno::set(libc::ENOENT);
        return -1;
    }
    // SAFETY: the arguments keep readlink's contract; AT_FDCWD gives them the same meaning.
    unsafe { libc::readlinkat(libc::AT_FDCWD, path, buffer, len) }
}

unsafe extern "C" fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int {
    fork::keep([prepare, parent, child]);
    0
}

/// The first step of jemalloc's initialisation that may fail. If it fails, the initialisation ends.
unsafe extern "C" fn _rjem_je_pages_boot() -> bool {
    // SAFETY: the function has no argument and no precondition.
    INIT_DISABLED.load(Relaxed) || unsafe { __real__rjem_je_pages_boot() }
}

/// Offset of the bin shards in a thread's state in jemalloc 5.3.1 (build.rs checks the version). It is the same on
/// x86-64 and aarch64, for every page size.
const SHARDS_AT: usize = 217;
/// Their number with pages of 4 KiB; larger pages have more.
const SHARDS: usize = 36;

/// Binds a thread to shard 0 of each bin. A thread without an arena has the first shard set to 255. Migration to an
/// arena does not reset it, and a free of a smallest block would then read beyond the shards.
///
/// # Safety
/// `thread` is the state of the calling thread.
unsafe fn bind_shards(thread: *mut c_void) {
    // SAFETY: the range lies inside the structure, which only this thread uses.
    let shards =
        unsafe { std::slice::from_raw_parts_mut(thread.cast::<u8>().add(SHARDS_AT), SHARDS) };
    if let [first @ u8::MAX, rest @ ..] = shards
        && rest.iter().all(|&shard| shard == 0)
    {
        *first = 0;
    }
}

/// Chooses the arena of a thread that has none. Without memory for a new arena the thread shares arena 0; jemalloc
/// would continue with a null pointer.
unsafe extern "C" fn _rjem_je_arena_choose_hard(
    thread: *mut c_void,
    internal: bool,
) -> *mut c_void {
    // SAFETY: the arguments keep arena_choose_hard's contract.
    let chosen = unsafe { __real__rjem_je_arena_choose_hard(thread, internal) };
    if !chosen.is_null() {
        return chosen;
    }
    // SAFETY: arena 0 exists before any thread needs one. A migration from it to itself binds the thread but does
    // not change the arena's thread count, which is therefore incremented first.
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

// System calls, or functions found in libc itself: an interposed function may allocate while jemalloc holds its locks.
// jemalloc sets malloc's errno by itself. The calls of Rust's standard library are redirected as well.

unsafe extern "C" fn mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let _errno = SavedErrno::save();
    if flags & libc::MAP_FIXED != 0 {
        // SAFETY: the call replaces this range.
        unsafe { unmap_hooks::report(at.addr(), len) };
    }
    // SAFETY: the arguments keep mmap's contract.
    let map = || unsafe { libc::syscall(libc::SYS_mmap, at, len, protection, flags, fd, offset) };
    let mut start = map();
    if start == -1 && recycler::release_addresses() {
        start = map();
    }
    start as *mut c_void
}

unsafe extern "C" fn munmap(start: *mut c_void, len: usize) -> c_int {
    let _errno = SavedErrno::save();
    // SAFETY: the arguments keep munmap's contract, so the contents are not needed.
    unsafe {
        unmap_hooks::report(start.addr(), len);
        libc::syscall(libc::SYS_munmap, start, len) as c_int
    }
}

unsafe extern "C" fn mprotect(start: *mut c_void, len: usize, protection: c_int) -> c_int {
    let _errno = SavedErrno::save();
    // SAFETY: the arguments keep mprotect's contract.
    unsafe { libc::syscall(libc::SYS_mprotect, start, len, protection) as c_int }
}

unsafe extern "C" fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int {
    let _errno = SavedErrno::save();
    if matches!(advice, libc::MADV_DONTNEED | libc::MADV_FREE) {
        // SAFETY: the caller gives the contents up.
        unsafe { unmap_hooks::report(start.addr(), len) };
    }
    // SAFETY: the arguments keep madvise's contract.
    unsafe { libc::syscall(libc::SYS_madvise, start, len, advice) as c_int }
}

unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    // SAFETY: the arguments keep clock_gettime's contract.
    unsafe { clock::gettime(clock, time) }
}

/// In glibc an IFUNC, which only the loader can find.
unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, _zone: *mut c_void) -> c_int {
    // SAFETY: an all-zero timespec is storage for the call to fill, and `time` is valid by gettimeofday's contract.
    unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        let result = clock::gettime(libc::CLOCK_REALTIME, &mut now);
        time.write(libc::timeval {
            tv_sec: now.tv_sec,
            tv_usec: now.tv_nsec / 1000,
        });
        result
    }
}

unsafe extern "C" fn sysconf(name: c_int) -> c_long {
    match name {
        libc::_SC_PAGESIZE => procfs::page_bytes() as c_long,
        // SAFETY: sysconf accepts any number.
        _ => unsafe { __real_sysconf(name) },
    }
}

/// jemalloc looks up `pthread_create`, and Rust's standard library functions that an old libc lacks. Both only need
/// symbols of libc.
unsafe extern "C" fn dlsym(_handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the name is NUL-terminated by dlsym's contract.
    objects::in_libc(unsafe { CStr::from_ptr(name) }).cast_mut()
}

/// The unwinder of the other builds asks for the tables of an address. glibc before 2.35 lacks the function, and so does
/// musl, where nothing unwinds.
unsafe extern "C" fn _dl_find_object(address: *mut c_void, found: *mut c_void) -> c_int {
    let function = objects::in_libc(c"_dl_find_object");
    // SAFETY: glibc declares this type for the name.
    let function: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int> =
        unsafe { objects::cast(function) };
    // SAFETY: the arguments keep the function's contract.
    function.map_or(-1, |function| unsafe { function(address, found) })
}

/// The unwinder of the portable build asks for a function's name, which is not needed here.
unsafe extern "C" fn dladdr(_address: *const c_void, _found: *mut libc::Dl_info) -> c_int {
    0
}

unsafe extern "C" fn sched_getaffinity(thread: c_int, len: usize, cpus: *mut c_void) -> c_int {
    // SAFETY: the arguments keep sched_getaffinity's contract.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, len, cpus) };
    let Ok(written) = usize::try_from(written) else {
        return -1;
    };
    // SAFETY: the kernel wrote `written` of the `len` bytes.
    unsafe { cpus.cast::<u8>().add(written).write_bytes(0, len - written) };
    0
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {}"
    };
    (through $slot:expr) => {
        concat!("jmp qword ptr [rip + ", $slot, "]")
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {}"
    };
    (through $slot:expr) => {
        concat!(
            "adrp x16, ",
            $slot,
            "\nldr x16, [x16, :lo12:",
            $slot,
            "]\nbr x16"
        )
    };
}

/// Functions that jemalloc reaches through a table. The loader fills it with the functions that the program calls, and
/// `bind_to_libc` with libc's own.
macro_rules! libcs_own {
    ($($name:ident)*) => {
        std::arch::global_asm!(
            ".pushsection .data.flarena_libcs_own, \"aw\"",
            ".balign 8",
            ".globl flarena_libcs_own",
            ".hidden flarena_libcs_own",
            "flarena_libcs_own:",
            $(concat!(".Lflarena_own_", stringify!($name), ": .quad __real_", stringify!($name)),)*
            ".popsection",
            ".pushsection .text.flarena_libcs_own, \"ax\"",
            $(
                concat!(".globl __wrap_", stringify!($name)),
                concat!(".hidden __wrap_", stringify!($name)),
                concat!(".type __wrap_", stringify!($name), ", @function"),
                concat!("__wrap_", stringify!($name), ":"),
                jump!(through concat!(".Lflarena_own_", stringify!($name))),
            )*
            ".popsection",
        );
        const LIBCS_OWN: [&CStr; [$(stringify!($name)),*].len()] =
            [$(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            }),*];
    };
}

unsafe extern "C" {
    #[link_name = "flarena_libcs_own"]
    static TABLE: [AtomicPtr<c_void>; LIBCS_OWN.len()];
}

/// Called once, before the backend is used, by the thread that chooses it. Also in glibc mode: the recycler's calls are
/// redirected, too.
pub fn bind_to_libc() {
    // SAFETY: the table has a word for each name, which is accessed atomically, here and by aligned loads.
    let table = unsafe { &TABLE };
    for (slot, function) in table.iter().zip(objects::all_in_libc(LIBCS_OWN)) {
        if !function.is_null() {
            slot.store(function.cast_mut(), Relaxed);
        }
    }
}

// Hidden symbols, unlike those of `no_mangle`: other objects must not find these names.
macro_rules! answer {
    ($($name:ident)*) => {$(
        std::arch::global_asm!(
            concat!(".globl __wrap_", stringify!($name)),
            concat!(".hidden __wrap_", stringify!($name)),
            concat!(".type __wrap_", stringify!($name), ", @function"),
            concat!("__wrap_", stringify!($name), ":"),
            jump!(),
            sym $name
        );
    )*};
}

// build.rs reads the same file.
include!("wrapped.rs");
