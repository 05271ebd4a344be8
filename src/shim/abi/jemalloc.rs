//! jemalloc's own interface, in jemalloc mode.
//!
//! `exports` says how these functions fail in glibc mode, and which need no more than that.

use std::ffi::{c_int, c_void};
use std::ptr;

use tikv_jemalloc_sys as je;

use crate::abi::{backend, heap, Ptr};
use crate::at_limit;
use crate::backends::choose::{self, dispatch};
use crate::memory_limit;
use flarena_recycler as recycler;
use flarena_sites as sites;

/// # Safety
/// As jemalloc's mallocx, which excludes a size of zero. In jemalloc mode.
pub unsafe fn mallocx(size: usize, flags: c_int) -> Ptr {
    if at_limit::refuses(size) {
        return ptr::null_mut();
    }
    memory_limit::charge(size);
    // SAFETY: jemalloc accepts any size but zero.
    let block = unsafe { je::mallocx(size, flags) };
    backend::record_site(block, size, backend::UNKNOWN_CALLER)
}

// A program may pass a large block from malloc to the functions below.

/// # Safety
/// As jemalloc's sallocx, whose result does not depend on the flags.
pub unsafe fn sallocx(ptr: *const c_void, _flags: c_int) -> usize {
    // SAFETY: the block is live by sallocx's contract.
    unsafe { heap::usable_size(ptr.cast_mut()) }
}

/// # Safety
/// As jemalloc's dallocx.
pub unsafe fn dallocx(ptr: Ptr, flags: c_int) {
    // SAFETY: the block is live by dallocx's contract.
    unsafe { free_by(ptr, || je::dallocx(ptr, flags)) }
}

/// # Safety
/// As jemalloc's sdallocx.
pub unsafe fn sdallocx(ptr: Ptr, size: usize, flags: c_int) {
    // SAFETY: the block is live by sdallocx's contract, and has this size if it is jemalloc's.
    unsafe { free_by(ptr, || je::sdallocx(ptr, size, flags)) }
}

/// # Safety
/// The block is live, and `free` frees it in jemalloc.
unsafe fn free_by(ptr: Ptr, free: impl FnOnce()) {
    if heap::free_large(ptr) {
        return;
    }
    if !choose::is_jemalloc() {
        // SAFETY: the block is not the recycler's, so it is live in the backend by this function's contract.
        return unsafe { backend::free(ptr) };
    }
    let _ = sites::forget_heap_block(ptr.cast());
    free();
}

/// # Safety
/// As jemalloc's rallocx. In jemalloc mode.
pub unsafe fn rallocx(ptr: Ptr, size: usize, flags: c_int) -> Ptr {
    let Some(old_size) = recycler::usable_size(ptr.cast()) else {
        // SAFETY: the block is not the recycler's, so it is live in jemalloc by rallocx's contract.
        let resize = || unsafe { je::rallocx(ptr, size, flags) };
        memory_limit::charge(size);
        return backend::realloc_by(ptr, size, backend::UNKNOWN_CALLER, resize);
    };
    // SAFETY: the size is not zero by rallocx's contract.
    let new = unsafe { mallocx(size, flags) };
    if !new.is_null() {
        // SAFETY: both blocks have at least as many bytes and are distinct.
        unsafe { ptr::copy_nonoverlapping(ptr.cast::<u8>(), new.cast(), old_size.min(size)) };
        recycler::free(ptr.cast());
    }
    new
}

/// # Safety
/// As jemalloc's xallocx: resizes in place or not at all, and returns the size.
pub unsafe fn xallocx(ptr: Ptr, size: usize, extra: usize, flags: c_int) -> usize {
    match recycler::usable_size(ptr.cast()) {
        Some(unchanged) => unchanged,
        // SAFETY: the block is not the recycler's, so it is live in the backend by xallocx's contract.
        None if !choose::is_jemalloc() => unsafe { dispatch!(usable_size(ptr)) },
        None => {
            // SAFETY: the block is not the recycler's, so it is live in jemalloc by xallocx's contract.
            let resize = || unsafe { je::xallocx(ptr, size, extra, flags) };
            // SAFETY: the block is not the recycler's, and jemalloc serves, so it is live in the backend.
            unsafe { backend::resize_in_place(ptr, resize) }
        }
    }
}
