//! The second try after the system refused memory: freed blocks may hold what the backend needs.
//!
//! The limits of the system (`flarena_sys::limits`) count the freed blocks that the recycler or jemalloc keeps.
//! Without the library a program would have that memory back.

use std::ffi::c_void;

use flarena_sys::errno;

/// Runs `allocate`. If it fails and `release` released memory, runs it again.
#[inline(always)]
pub fn try_again(
    allocate: impl Fn() -> *mut c_void,
    release: impl FnOnce() -> bool,
) -> *mut c_void {
    let before = errno::get();
    let block = allocate();
    if !block.is_null() || !release() {
        return block;
    }
    let block = allocate();
    if !block.is_null() {
        errno::set(before);
    }
    block
}
