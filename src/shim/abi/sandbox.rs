//! A program that gives up privileges (`PR_SET_NO_NEW_PRIVS`, which libseccomp and all who are not root must do first)
//! or sets a seccomp list: from there on the library keeps to the system calls of glibc's malloc.
//!
//! A program that is root may set a list by `syscall` alone, or by an instruction of its own: it is not seen.

use std::ffi::{c_int, c_uint, c_ulong};

use crate::launch;
use flarena_sys::{owner, seccomp};

/// Behind a list of others this shows that blocks may have keys, and that they may be taken off.
///
/// # Safety
/// As Linux's pkey_alloc.
pub unsafe fn pkey_alloc(flags: c_uint, rights: c_uint) -> c_int {
    let (flags, rights) = (c_ulong::from(flags), c_ulong::from(rights));
    // SAFETY: the arguments are plain numbers.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, flags, rights) } as c_int;
    if key >= 0 {
        seccomp::note_key();
    }
    key
}

/// # Safety
/// As Linux's prctl.
pub unsafe fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    let goes_in = option == libc::PR_SET_NO_NEW_PRIVS || option == libc::PR_SET_SECCOMP;
    if goes_in && owner::owns_malloc() && !seccomp::is_closed() && seccomp::is_own_memory() {
        seccomp::close();
        launch::retire();
    }
    // SAFETY: the arguments are prctl's own, by this function's contract.
    unsafe { libc::syscall(libc::SYS_prctl, c_ulong::from(option as u32), a, b, c, d) as c_int }
}
