//! The chosen backend, as the cold paths call it. Where sites are on, a large block that it serves is noted, and
//! forgotten before the backend takes it back, as from then on another thread may have its address.

use std::ffi::c_void;

use crate::choice::choose::{self, dispatch};
use crate::sites::{self, Forgotten};
use flarena_recycler as recycler;

/// For calls that do not tell where they come from.
pub const UNKNOWN_CALLER: usize = 0;

/// From now on the hot path's frees come here, too: called once, before sites are on.
pub fn watch_frees() {
    choose::set_frees(free, realloc_small);
}

/// # Safety
/// The backend is chosen.
pub unsafe fn malloc(size: usize, caller: usize) -> *mut c_void {
    // SAFETY: a chosen backend takes any size.
    noted(unsafe { dispatch!(malloc(size)) }, size, caller)
}

/// # Safety
/// The backend is chosen.
pub unsafe fn calloc(count: usize, size: usize, caller: usize) -> *mut c_void {
    // SAFETY: a chosen backend checks the product.
    let block = unsafe { dispatch!(calloc(count, size)) };
    noted(block, count.saturating_mul(size), caller)
}

/// # Safety
/// The backend is chosen; `align` is a power of two.
pub unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: the backend is chosen and the alignment a power of two, by this function's contract.
    let block = unsafe { dispatch!(memalign(align, size)) };
    noted(block, size, UNKNOWN_CALLER)
}

/// # Safety
/// `old` is a live block of the backend's; `size` is not zero.
pub unsafe fn realloc(old: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    // SAFETY: the old block is the backend's and live, and the size not zero, by this function's contract.
    let new = moved(old, || unsafe { dispatch!(realloc(old, size)) });
    noted(new, size, caller)
}

/// A realloc of a block of the backend's: what was noted of it is forgotten, unless the backend answers that it stays.
pub fn moved(old: *mut c_void, realloc: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let forgotten = sites::forget_heap_block(old.cast());
    let new = realloc();
    if new.is_null() {
        forgotten.into_iter().for_each(Forgotten::put_back);
    }
    new
}

/// The hot path's: a new size that is not large.
unsafe extern "C" fn realloc_small(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: a live block of the backend's by realloc's contract, sifted by `heap::realloc`.
    unsafe { realloc(old, size, UNKNOWN_CALLER) }
}

/// # Safety
/// A live block of the backend's.
pub unsafe extern "C" fn free(block: *mut c_void) {
    let _ = sites::forget_heap_block(block.cast());
    // SAFETY: the block is the backend's and live by this function's contract.
    unsafe { dispatch!(free(block)) }
}

#[inline]
fn noted(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if sites::is_on() && recycler::is_large(size) && !block.is_null() {
        sites::note_heap_block(block.cast(), size, caller);
    }
    block
}
