//! `dlclose`: closes a library while the governor uses none, so that the governor's reference is never
//! the last one. Destructors would run in the governor's thread, which has other descriptors, and
//! the library would still be loaded when `dlclose` returns.

use std::ffi::{c_int, c_void};

use flarena_sys::{loader::dl, thread::helper};

/// # Safety
/// As POSIX dlclose.
pub unsafe fn dlclose(handle: *mut c_void) -> c_int {
    helper::quiesce();
    // SAFETY: the handle is the caller's, by this function's contract.
    let result = unsafe { dl::close(handle) };
    helper::resume();
    result
}
