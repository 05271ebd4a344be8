//! The chosen backend, as the cold paths call it.
//!
//! With sites on, a large block of the backend is recorded when it is allocated. The record is removed before the
//! backend frees the block, because another thread may get its address from then on.

use std::ffi::c_void;

use crate::backends::choose::{self, dispatch};
use crate::memory_limit;
use crate::sites::{self, Forgotten};
use flarena_recycler as recycler;

/// The caller of functions that do not pass their return address.
pub const UNKNOWN_CALLER: usize = 0;

/// Leads the fast path's frees here as well. Called once, before sites are on.
pub fn watch_frees() {
    choose::set_frees(free, realloc_small);
}

/// # Safety
/// The backend is chosen.
pub unsafe fn malloc(size: usize, caller: usize) -> *mut c_void {
    memory_limit::charge(size);
    // SAFETY: a chosen backend takes any size.
    record_site(unsafe { dispatch!(malloc(size)) }, size, caller)
}

/// # Safety
/// The backend is chosen.
pub unsafe fn calloc(count: usize, size: usize, caller: usize) -> *mut c_void {
    memory_limit::charge(count.saturating_mul(size));
    // SAFETY: a chosen backend checks the product.
    let block = unsafe { dispatch!(calloc(count, size)) };
    record_site(block, count.saturating_mul(size), caller)
}

/// # Safety
/// The backend is chosen; `align` is a power of two.
pub unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
    memory_limit::charge(size);
    // SAFETY: the backend is chosen and the alignment a power of two, by this function's contract.
    let block = unsafe { dispatch!(memalign(align, size)) };
    record_site(block, size, UNKNOWN_CALLER)
}

/// # Safety
/// `old` is a live block of the backend; `size` is not zero.
pub unsafe fn realloc(old: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    memory_limit::charge(size);
    // SAFETY: by this function's contract the block is live in the backend and the size is not zero.
    let new = realloc_recorded(old, || unsafe { dispatch!(realloc(old, size)) });
    record_site(new, size, caller)
}

/// Runs the backend's `realloc` and removes the record of the old block, unless the realloc fails.
pub fn realloc_recorded(old: *mut c_void, realloc: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let forgotten = sites::forget_heap_block(old.cast());
    let new = realloc();
    if new.is_null() {
        forgotten.into_iter().for_each(Forgotten::put_back);
    }
    new
}

/// The fast path's realloc: the new size is not large.
unsafe extern "C" fn realloc_small(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `heap::realloc` passes only live blocks of the backend, with a size that is not zero.
    unsafe { realloc(old, size, UNKNOWN_CALLER) }
}

/// # Safety
/// `block` is live in the backend.
pub unsafe extern "C" fn free(block: *mut c_void) {
    let _ = sites::forget_heap_block(block.cast());
    // SAFETY: the block is live in the backend by this function's contract.
    unsafe { dispatch!(free(block)) }
}

#[inline]
fn record_site(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if sites::is_on() && recycler::is_large(size) && !block.is_null() {
        sites::note_heap_block(block.cast(), size, caller);
    }
    block
}
