//! What jemalloc asks of libc at its start, answered here: the linker leads all calls of these three
//! functions from inside this library to us (`--wrap` in build.rs).
//!
//! Every Rust program that embeds jemalloc reads the variable `_RJEM_MALLOC_CONF` and the link
//! `/etc/_rjem_malloc.conf`, and some set the variable for all their children (polars does). Ours has
//! its options from `options` alone. It also registers fork handlers, even in a process that glibc
//! serves, where they take locks that nobody needs: a fork in a signal handler then hangs.

use std::ffi::{c_char, c_int, CStr};
use std::ptr;

use super::options;

type Handler = Option<unsafe extern "C" fn()>;

extern "C" {
    fn __real_pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
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
    if !options::serves() {
        return 0;
    }
    // SAFETY: the handlers are pthread_atfork's own arguments.
    unsafe { __real_pthread_atfork(prepare, parent, child) }
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
