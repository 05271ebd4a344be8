//! Calls of jemalloc's that are answered here: the linker leads them to us from all of its objects (`--wrap` in
//! build.rs).
//!
//! Every Rust program that embeds jemalloc reads the variable `_RJEM_MALLOC_CONF` and the link
//! `/etc/_rjem_malloc.conf`, and some set the variable for all their children (polars does). Ours has
//! its options from `options` alone. It also registers fork handlers, even in a process that glibc
//! serves, where they take locks that nobody needs: a fork in a signal handler then hangs. `choice::fork` calls
//! them where they are needed.
//!
//! And it crashes where a new thread's first allocation finds no memory for an arena of its own.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};

use super::fork::{self, Handler};

extern "C" {
    fn __real__rjem_je_arena_choose_hard(thread: *mut c_void, internal: bool) -> *mut c_void;
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
        crate::process::procfs::set_errno(libc::ENOENT);
        return -1;
    }
    // SAFETY: the arguments are readlink's own; AT_FDCWD makes them mean the same here.
    unsafe { libc::readlinkat(libc::AT_FDCWD, path, buffer, len) }
}

unsafe extern "C" fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int {
    fork::keep([prepare, parent, child]);
    0
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
        }
        first
    }
}

// Hidden, unlike a `no_mangle` function: nobody outside may find these names.
#[cfg(target_arch = "x86_64")]
macro_rules! answer {
    ($name:literal, $function:path) => {
        std::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "jmp {}",
            sym $function
        );
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! answer {
    ($name:literal, $function:path) => {
        std::arch::global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            "b {}",
            sym $function
        );
    };
}

answer!("__wrap_secure_getenv", secure_getenv);
answer!("__wrap_readlink", readlink);
answer!("__wrap_pthread_atfork", pthread_atfork);
answer!("__wrap__rjem_je_arena_choose_hard", arena_choose_hard);
