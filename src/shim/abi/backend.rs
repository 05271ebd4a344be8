//! The chosen backend, as the cold paths call it.
//!
//! With sites on, a large block of the backend is recorded when it is allocated, and a small one if the sampler hits it.
//! The record is removed before the backend frees the block, because another thread may get its address from then on.

use std::ffi::c_void;

use crate::backends::choose::dispatch;
use crate::memory_limit;
use crate::sites::sampler::{self, Hit};
use crate::sites::{self, Forgotten};
use flarena_recycler as recycler;

/// The caller of functions that do not pass their return address.
pub const UNKNOWN_CALLER: usize = 0;

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
    // SAFETY: by this function's contract.
    unsafe { realloc_uncharged(old, size, caller) }
}

/// # Safety
/// As `realloc`.
unsafe fn realloc_uncharged(old: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    // SAFETY: by this function's contract the block is live in the backend and the size is not zero.
    let resize = || unsafe { dispatch!(realloc(old, size)) };
    // SAFETY: by this function's contract.
    unsafe { realloc_by(old, size, caller, resize) }
}

/// Resizes a block by a function of the backend, and keeps the block's record if it has one.
///
/// # Safety
/// As `realloc`; `resize` returns the block in its new size, or null and leaves it as it is.
pub unsafe fn realloc_by(
    old: *mut c_void,
    size: usize,
    caller: usize,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if !sites::is_on() || recycler::is_large(size) {
        return record_site(realloc_recorded(old, resize), size, caller);
    }
    // SAFETY: by this function's contract the block is live in the backend.
    let old_bytes = unsafe { dispatch!(usable_size(old)) };
    let record = sites::forget_heap_block(old.cast());
    let new = resize();
    if new.is_null() {
        record.into_iter().for_each(Forgotten::put_back);
        return new;
    }
    // SAFETY: the backend has just returned the block.
    let bytes = unsafe { dispatch!(usable_size(new)) };
    sample_resized(new, record, old_bytes, bytes, caller);
    new
}

/// Resizes a block in place by a function of the backend that returns its new size, and updates the block's record.
///
/// # Safety
/// The block is live in the backend.
pub unsafe fn resize_in_place(block: *mut c_void, resize: impl FnOnce() -> usize) -> usize {
    if !sites::is_on() {
        return resize();
    }
    // SAFETY: by this function's contract the block is live in the backend.
    let old_bytes = unsafe { dispatch!(usable_size(block)) };
    let record = sites::forget_heap_block(block.cast());
    let bytes = resize();
    if bytes == old_bytes {
        record.into_iter().for_each(Forgotten::put_back);
    } else if recycler::is_large(bytes) {
        record_site(block, bytes, UNKNOWN_CALLER);
    } else {
        sample_resized(block, record, old_bytes, bytes, UNKNOWN_CALLER);
    }
    bytes
}

/// A block of the backend has a new size, which is not large. Bytes that it gained may be hit.
fn sample_resized(
    block: *mut c_void,
    record: Option<Forgotten>,
    old_bytes: usize,
    bytes: usize,
    caller: usize,
) {
    let mut counted = old_bytes;
    if let Some(record) = record {
        match record.hit() {
            Some(hit) if hit.is_within(bytes) => return record.keep_as(block.cast(), bytes),
            Some(_) => {}
            // The block was large, so none of its bytes were counted.
            None => counted = 0,
        }
    }
    if bytes > counted {
        let hit = sampler::count(bytes - counted).map(|hit| hit.moved_by(counted));
        note_sample(block, bytes, hit, caller);
    }
}

/// Runs the backend's `realloc` and removes the record of the old block, unless the realloc fails.
fn realloc_recorded(old: *mut c_void, realloc: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let forgotten = sites::forget_heap_block(old.cast());
    let new = realloc();
    if new.is_null() {
        forgotten.into_iter().for_each(Forgotten::put_back);
    }
    new
}

/// The fast path's realloc: the new size is not large. Small blocks are not charged, because the backend's own fast path
/// charges none.
///
/// # Safety
/// As `realloc`.
pub unsafe extern "C" fn realloc_small(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `heap::realloc` passes only live blocks of the backend, with a size that is not zero.
    unsafe { realloc_uncharged(old, size, UNKNOWN_CALLER) }
}

/// # Safety
/// `block` is live in the backend.
pub unsafe extern "C" fn free(block: *mut c_void) {
    if sites::may_have_record(block.cast()) {
        let _ = sites::forget_heap_block(block.cast());
    }
    // SAFETY: the block is live in the backend by this function's contract.
    unsafe { dispatch!(free(block)) }
}

/// Records a block that the backend has just allocated, if sites are on.
#[inline]
pub fn record_site(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if !sites::is_on() || block.is_null() {
        return block;
    }
    if recycler::is_large(size) {
        sites::note_heap_block(block.cast(), size, None, caller);
        return block;
    }
    note_sample(block, size, sampler::count(size), caller)
}

/// Records a block that the sampler hit.
#[inline]
pub fn note_sample(
    block: *mut c_void,
    bytes: usize,
    hit: Option<Hit>,
    caller: usize,
) -> *mut c_void {
    if hit.is_some() && !block.is_null() && sites::is_on() {
        sites::note_heap_block(block.cast(), bytes, hit, caller);
    }
    block
}
