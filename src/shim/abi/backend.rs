//! The chosen backend, as the cold paths call it.
//!
//! With sites on, a large block of the backend is recorded when it is allocated, and a small one if the sampler hits it.
//! The record is removed before the backend frees the block, because another thread may get its address from then on.

use crate::abi::Ptr;
use crate::backends::choose::{self, dispatch};
use crate::memory_limit;
use flarena_recycler as recycler;
use flarena_sites::{self as sites, sampler, Forgotten};

/// The caller of functions that do not pass their return address.
pub const UNKNOWN_CALLER: usize = 0;

/// # Safety
/// The backend is chosen.
pub unsafe fn malloc(size: usize, caller: usize) -> Ptr {
    memory_limit::charge(size);
    // SAFETY: a chosen backend takes any size.
    record_site(unsafe { dispatch!(malloc(size)) }, size, caller)
}

/// # Safety
/// The backend is chosen.
pub unsafe fn calloc(count: usize, size: usize, caller: usize) -> Ptr {
    memory_limit::charge(count.saturating_mul(size));
    // SAFETY: a chosen backend checks the product.
    let block = unsafe { dispatch!(calloc(count, size)) };
    record_site(block, count.saturating_mul(size), caller)
}

/// # Safety
/// The backend is chosen; `align` is a power of two.
pub unsafe fn memalign(align: usize, size: usize) -> Ptr {
    memory_limit::charge(size);
    // SAFETY: the backend is chosen and the alignment a power of two, by this function's contract.
    let block = unsafe { dispatch!(memalign(align, size)) };
    record_site(block, size, UNKNOWN_CALLER)
}

/// # Safety
/// `old` is a live block of the backend; `size` is not zero.
pub unsafe fn realloc(old: Ptr, size: usize, caller: usize) -> Ptr {
    memory_limit::charge(size);
    // SAFETY: by this function's contract.
    unsafe { realloc_uncharged(old, size, caller) }
}

/// # Safety
/// As `realloc`.
unsafe extern "C" fn realloc_uncharged(old: Ptr, size: usize, caller: usize) -> Ptr {
    // SAFETY: by this function's contract the block is live in the backend and the size is not zero.
    realloc_by(old, size, caller, || unsafe {
        dispatch!(realloc(old, size))
    })
}

/// Resizes a block by `resize`, which returns it in its new size, or null and leaves it as it is. Records the result as
/// a new block.
pub fn realloc_by(old: Ptr, size: usize, caller: usize, resize: impl FnOnce() -> Ptr) -> Ptr {
    let forgotten = sites::forget_heap_block(old.cast());
    let new = resize();
    if new.is_null() {
        forgotten.into_iter().for_each(Forgotten::put_back);
    }
    record_site(new, size, caller)
}

/// Resizes a block in place by `resize`, which returns its new size. Counts the bytes that it gains, and records it as a
/// new block.
///
/// # Safety
/// The block is live in the backend.
pub unsafe fn resize_in_place(block: Ptr, resize: impl FnOnce() -> usize) -> usize {
    // SAFETY: by this function's contract the block is live in the backend.
    let old_bytes = unsafe { dispatch!(usable_size(block)) };
    let forgotten = sites::forget_heap_block(block.cast());
    let bytes = resize();
    if bytes == old_bytes {
        forgotten.into_iter().for_each(Forgotten::put_back);
    } else {
        memory_limit::charge(bytes.saturating_sub(old_bytes));
        record_site(block, bytes, UNKNOWN_CALLER);
    }
    bytes
}

/// Defines functions that jump to another one. It gets the return address of the call as its last argument, which has this
/// register on x86-64 and on arm64.
macro_rules! pass_caller {
    ($($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?
        = $target:ident, $x86:literal, $arm:literal;)*) => {$(
        $(#[$attribute])*
        #[unsafe(naked)]
        $visibility unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {}", sym $target);
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(concat!("mov ", $arm, ", x30"), "b {}", sym $target);
        }
    )*};
}
pub(crate) use pass_caller;

pass_caller! {
    /// The fast path's realloc: the new size is not large. Small blocks are not charged, because the backend's own fast path
    /// charges none. Reached by a jump from `heap::realloc`, so the return address is that of its caller.
    ///
    /// # Safety
    /// As `realloc`.
    pub fn realloc_small(old: Ptr, size: usize) -> Ptr = realloc_uncharged, "rdx", "x2";
}

/// Also the fast path's free while sites are on.
///
/// # Safety
/// `block` is live in the backend.
pub unsafe extern "C" fn free(block: Ptr) {
    if sites::may_have_record(block.cast()) {
        // SAFETY: by this function's contract.
        return unsafe { free_recorded(block) };
    }
    // SAFETY: the block is live in the backend by this function's contract.
    unsafe { choose::BACKEND_FREE.get()(block) }
}

#[cold]
unsafe extern "C" fn free_recorded(block: Ptr) {
    let _ = sites::forget_heap_block(block.cast());
    // SAFETY: by the contract of `free`.
    unsafe { choose::BACKEND_FREE.get()(block) }
}

/// Records a block that the backend has just allocated, if sites are on.
#[inline]
pub fn record_site(block: Ptr, size: usize, caller: usize) -> Ptr {
    if !sites::is_on() || block.is_null() {
        return block;
    }
    if recycler::is_large(size) {
        sites::note_large_heap_block(block.cast(), size, caller);
        return block;
    }
    note_if_hit(block, size, sampler::count(size), caller)
}

/// Records a small block if the sampler hit it.
#[inline]
pub fn note_if_hit(block: Ptr, bytes: usize, is_hit: bool, caller: usize) -> Ptr {
    if is_hit && !block.is_null() && sites::is_on() {
        sites::note_sample(block.cast(), bytes, caller);
    }
    block
}
