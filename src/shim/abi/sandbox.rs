//! Observes how the program prepares a seccomp filter. `PR_SET_NO_NEW_PRIVS`, which libseccomp and every
//! process without root needs first, or `PR_SET_SECCOMP` restricts the library to the system calls of
//! glibc's malloc (docs/design/seccomp.md).
//!
//! Seccomp's strict mode permits no call of malloc. Then free memory stays where it is.
//!
//! A root process may install a filter by `syscall` or by its own instruction. That is not detected.

use std::ffi::{c_int, c_uint, c_ulong};

use crate::backends::choose::dispatch;
use crate::launch;
use flarena_recycler as recycler;
use flarena_sys::{owner, seccomp};

/// Shows that the program uses protection keys, and that a filter, if any, permits the calls.
///
/// # Safety
/// As Linux's pkey_alloc.
pub unsafe fn pkey_alloc(flags: c_uint, rights: c_uint) -> c_int {
    let (flags, rights) = (c_ulong::from(flags), c_ulong::from(rights));
    // SAFETY: the arguments are plain numbers.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, flags, rights) } as c_int;
    if key >= 0 {
        seccomp::note_protection_key();
    }
    key
}

/// # Safety
/// As Linux's prctl.
pub unsafe fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    let restricts = option == libc::PR_SET_NO_NEW_PRIVS || option == libc::PR_SET_SECCOMP;
    // `is_vfork_child` calls getpid, which the filter of a restricted program may punish.
    let is_restricted = !seccomp::allows_common_calls();
    if restricts && owner::owns_malloc() && (is_restricted || !seccomp::is_vfork_child()) {
        if seccomp::restrict_to_malloc_calls() {
            launch::end();
        }
        if option == libc::PR_SET_SECCOMP && a == c_ulong::from(libc::SECCOMP_MODE_STRICT) {
            // The kernel then kills for each call but read, write, exit and sigreturn.
            recycler::freeze();
            dispatch!(keep_memory());
        }
    }
    // SAFETY: the arguments are prctl's own, by this function's contract.
    unsafe { libc::syscall(libc::SYS_prctl, c_ulong::from(option as u32), a, b, c, d) as c_int }
}
