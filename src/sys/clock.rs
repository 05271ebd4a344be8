//! libc's `clock_gettime`, even if another library interposes it: a replacement may allocate.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::loader::objects;

/// libc's function; null until `configure` finds it.
static LIBCS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

type Gettime = unsafe extern "C" fn(c_int, *mut libc::timespec) -> c_int;

/// Called once by the constructor.
pub fn configure() {
    let found = objects::in_libc(c"clock_gettime");
    LIBCS.store(found.cast_mut(), Relaxed);
}

/// Does not allocate. Calls only libc or the kernel.
///
/// # Safety
/// As POSIX's clock_gettime.
pub unsafe fn gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    // SAFETY: the pointer is null or libc's function, which has this type.
    let found: Option<Gettime> = unsafe { objects::cast(LIBCS.load(Relaxed)) };
    match found {
        // SAFETY: the caller keeps clock_gettime's contract.
        Some(libcs) => unsafe { libcs(clock, time) },
        // SAFETY: the caller keeps clock_gettime's contract.
        None => unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int },
    }
}
