//! Large blocks of the malloc family: the recycler serves them, or the backend if the recycler cannot.
//! Nothing here is on the fast path.

use std::ffi::c_void;
use std::ptr;

use crate::abi::backend::{self, UNKNOWN_CALLER};
use crate::backends::choose::{self, dispatch};
use crate::launch::{self, StartTrigger};
use crate::sites;
use flarena_recycler as recycler;
use flarena_recycler::{Contents, Realloc};

/// Hands a block to the program: notes its site, and starts the governor if one is due.
fn serve(block: *mut u8, caller: usize) -> *mut c_void {
    if !block.is_null() {
        if sites::is_on() {
            sites::note(block, caller);
        }
        launch::start_if_due(StartTrigger::LargeBlock);
    }
    block.cast()
}

/// The first allocation of the process, or one of at least 64 KiB, which the recycler may serve. Reached by a
/// jump, so the return address is that of malloc's caller; it is passed as an argument. The same holds for calloc
/// and realloc.
///
/// # Safety
/// As C's malloc.
#[cold]
#[unsafe(naked)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym malloc_for);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x1, x30", "b {}", sym malloc_for);
}

unsafe extern "C" fn malloc_for(size: usize, caller: usize) -> *mut c_void {
    if !choose::is_ready() {
        return recycler::alloc_early(size, Contents::Any).cast();
    }
    if recycler::accepts(size, 1) {
        let block = serve(recycler::alloc(size, Contents::Any), caller);
        if !block.is_null() {
            return block;
        }
    }
    // SAFETY: is_ready() chose the backend.
    unsafe { backend::malloc(size, caller) }
}

/// # Safety
/// As C's calloc.
#[cold]
#[unsafe(naked)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("mov rdx, [rsp]", "jmp {}", sym calloc_for);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x2, x30", "b {}", sym calloc_for);
}

unsafe extern "C" fn calloc_for(count: usize, size: usize, caller: usize) -> *mut c_void {
    if !choose::is_ready() {
        return recycler::alloc_early(count.saturating_mul(size), Contents::Zeroed).cast();
    }
    let total = count.checked_mul(size);
    if let Some(total) = total.filter(|total| recycler::accepts(*total, 1)) {
        let block = serve(recycler::alloc(total, Contents::Zeroed), caller);
        if !block.is_null() {
            return block;
        }
    }
    // SAFETY: is_ready() chose the backend.
    unsafe { backend::calloc(count, size, caller) }
}

/// # Safety
/// As C's aligned_alloc, with a power of two.
pub unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
    if recycler::accepts(size, align) {
        let block = serve(recycler::alloc(size, Contents::Any), UNKNOWN_CALLER);
        if !block.is_null() {
            return block;
        }
    }
    // SAFETY: the caller chose the backend and vouches for the alignment.
    unsafe { backend::memalign(align, size) }
}

/// `old` may be a block of the recycler, or the recycler may serve `size`.
///
/// # Safety
/// As C's realloc; neither argument is zero.
#[cold]
#[unsafe(naked)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("mov rdx, [rsp]", "jmp {}", sym realloc_for);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x2, x30", "b {}", sym realloc_for);
}

unsafe extern "C" fn realloc_for(old: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    match recycler::realloc(old.cast(), size) {
        Realloc::Done(block) => serve(block, caller),
        // The size is too small for the recycler, or it has no memory; the backend may have some.
        // SAFETY: the block belongs to the recycler.
        Realloc::MoveToBackend | Realloc::Failed => unsafe { move_to_backend(old, size, caller) },
        // SAFETY: the block belongs to the backend.
        Realloc::NotOurs => unsafe { grow_out_of_backend(old, size, caller) },
    }
}

unsafe fn move_to_backend(old: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    let new: *mut c_void = if choose::is_ready() {
        // SAFETY: is_ready() chose the backend.
        unsafe { backend::malloc(size, caller) }
    } else {
        recycler::alloc_early(size, Contents::Any).cast()
    };
    if new.is_null() {
        return new;
    }
    let kept = recycler::usable_size(old.cast()).unwrap_or(0).min(size);
    // SAFETY: both blocks have at least `kept` bytes and are distinct.
    unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), kept) };
    free(old);
    new
}

/// Frees a block of the recycler for the program; false if it is none. Unlike `heap::free_cold`, its callers are
/// never libc itself, so the governor may start here without checking the return address.
pub fn free(ptr: *mut c_void) -> bool {
    let freed = recycler::free(ptr.cast());
    if freed {
        launch::start_if_due(StartTrigger::LargeBlock);
    }
    freed
}

unsafe fn grow_out_of_backend(old: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if !recycler::accepts(size, 1) {
        // SAFETY: recycler::realloc found no block here, so `old` is live in the backend.
        return unsafe { backend::realloc(old, size, caller) };
    }
    // SAFETY: recycler::realloc found no block here, so `old` is live in the backend.
    let usable = unsafe { dispatch!(usable_size(old)) };
    // A backend that does not know the size of the block must move it itself.
    let new = if usable == 0 {
        ptr::null_mut()
    } else {
        recycler::alloc(size, Contents::Any)
    };
    if new.is_null() {
        // SAFETY: the old block is live in the backend; `size` is not zero.
        return unsafe { backend::realloc(old, size, caller) };
    }
    // SAFETY: the old block is live in the backend, and the two blocks are distinct.
    unsafe {
        ptr::copy_nonoverlapping(old.cast::<u8>(), new, usable.min(size));
        backend::free(old);
    }
    serve(new, caller)
}

/// # Safety
/// A live block of this library.
#[cold]
#[inline(never)]
pub unsafe fn usable_size(ptr: *mut c_void) -> usize {
    match recycler::usable_size(ptr.cast()) {
        Some(size) => size,
        // SAFETY: the recycler has no block here, so `ptr` is live in the backend.
        None => unsafe { dispatch!(usable_size(ptr)) },
    }
}
