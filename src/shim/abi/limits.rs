//! Observes the program's calls that set a limit on its memory. Freed blocks that the recycler keeps count against it.

use std::ffi::{c_int, c_uint, c_ulong};

use libc::{pid_t, rlimit64};

use crate::backends::choose;
use flarena_sys::{limits, owner};

/// # Safety
/// As Linux's setrlimit.
pub unsafe fn setrlimit(resource: c_uint, new: *const rlimit64) -> c_int {
    // SAFETY: the arguments keep setrlimit's contract, and the old limit is not asked for.
    unsafe { prlimit(0, resource, new, std::ptr::null_mut()) }
}

/// # Safety
/// As Linux's prlimit.
pub unsafe fn prlimit(
    process: pid_t,
    resource: c_uint,
    new: *const rlimit64,
    old: *mut rlimit64,
) -> c_int {
    let (id, number) = (c_ulong::from(process as u32), c_ulong::from(resource));
    // SAFETY: the arguments are prlimit's own, by this function's contract.
    let result = unsafe { libc::syscall(libc::SYS_prlimit64, id, number, new, old) } as c_int;
    if result == 0 && !new.is_null() && limits::are_read_from(resource) {
        follow(|| {
            if process == 0 || process as u32 == std::process::id() {
                choose::follow_limits();
            }
        });
    }
    result
}

/// # Safety
/// As Linux's mlockall.
pub unsafe fn mlockall(flags: c_int) -> c_int {
    // SAFETY: the argument is a plain number.
    let result = unsafe { libc::syscall(libc::SYS_mlockall, c_ulong::from(flags as u32)) } as c_int;
    if result == 0 {
        follow(|| {
            limits::lock_all(true);
            choose::follow_limits();
        });
    }
    result
}

/// # Safety
/// As Linux's munlockall.
pub unsafe fn munlockall() -> c_int {
    // SAFETY: the call has no argument.
    let result = unsafe { libc::syscall(libc::SYS_munlockall) } as c_int;
    if result == 0 {
        follow(|| limits::lock_all(false));
    }
    result
}

/// A vfork child changes its own limits, but shares its parent's memory. In a restricted program `act` could make a call
/// that the filter punishes.
fn follow(act: impl FnOnce()) {
    if owner::may_act() {
        act();
    }
}
