//! What C and glibc promise of each function of the malloc family, in both modes: zero sizes,
//! overflow, alignment, errno. The hot path is a comparison and a jump; large blocks are `large`'s.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::abi::{backend, foreign, large};
use crate::choice::choose::{self, dispatch};
use crate::launch::{self, StartTrigger};
use flarena_recycler as recycler;
use flarena_sys::errno;
use flarena_sys::proc::procfs::page_bytes;

/// A freed pointer with this alignment takes the cold path. Every large block has it, NULL has it,
/// and one small block in some thousands: those serve as a sample of what the program frees.
const SAMPLE_ALIGN: usize = 64 << 10;

/// Requests of this size and above leave the hot path, perhaps for the recycler: the least that
/// `FLARENA_RECYCLE_MIN` may be.
const COLD_MIN_BYTES: usize = flarena_shared::defaults::RECYCLE_MIN_BYTES_LOWEST as usize;

/// # Safety
/// As C's malloc.
#[inline(always)]
pub unsafe fn malloc(size: usize) -> *mut c_void {
    if size >= COLD_MIN_BYTES {
        // SAFETY: large::malloc takes any size.
        return unsafe { large::malloc(size) };
    }
    // SAFETY: a malloc takes any size.
    unsafe { choose::MALLOC.get()(size) }
}

/// # Safety
/// As C's calloc.
#[inline(always)]
pub unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    // An overflowing product is some backend's ENOMEM, whatever way it goes.
    if count.wrapping_mul(size) >= COLD_MIN_BYTES {
        // SAFETY: large::calloc checks the product and takes any.
        return unsafe { large::calloc(count, size) };
    }
    // SAFETY: a calloc checks the product.
    unsafe { choose::CALLOC.get()(count, size) }
}

/// # Safety
/// As C's realloc; `realloc(ptr, 0)` frees and answers NULL, as glibc has always done.
#[inline(always)]
pub unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    if ptr.is_null() {
        // SAFETY: realloc(NULL, n) is malloc(n).
        return unsafe { malloc(size) };
    }
    if size == 0 {
        // SAFETY: the block is live by realloc's contract, and nobody uses it after.
        unsafe { free(ptr) };
        return ptr::null_mut();
    }
    if size >= COLD_MIN_BYTES || recycler::may_be_block(ptr.cast()) {
        // SAFETY: the block is live by realloc's contract; neither argument is zero.
        return unsafe { large::realloc(ptr, size) };
    }
    // SAFETY: the pointer is the backend's; neither argument is zero.
    unsafe { choose::REALLOC.get()(ptr, size) }
}

/// # Safety
/// As BSD's reallocarray.
pub unsafe fn reallocarray(ptr: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(total) = count.checked_mul(size) else {
        return fail(libc::ENOMEM);
    };
    match foreign::functions() {
        // SAFETY: NULL or live by reallocarray's contract, and the product did not overflow.
        None => unsafe { realloc(ptr, total) },
        // SAFETY: where another allocator serves, the block is its own.
        Some(theirs) => unsafe { theirs.realloc(ptr, total) },
    }
}

/// # Safety
/// As C's free.
#[inline(always)]
pub unsafe fn free(ptr: *mut c_void) {
    if ptr as usize & (SAMPLE_ALIGN - 1) == 0 {
        // SAFETY: NULL or live by free's contract, which is free_sampled's.
        return unsafe { free_sampled(ptr) };
    }
    // SAFETY: no multiple of 64 KiB, so neither NULL nor the recycler's: a live block of the
    // backend's.
    unsafe { choose::FREE.get()(ptr) }
}

/// Reached by a jump from `free`, so that the return address is that of free's caller; adds it as
/// an argument. Where the compiler made a call instead, the address is our own, and is seen to be.
#[cold]
#[unsafe(naked)]
unsafe extern "C" fn free_sampled(ptr: *mut c_void) {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym free_cold);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x1, x30", "b {}", sym free_cold);
}

/// # Safety
/// As C's free.
#[cold]
unsafe extern "C" fn free_cold(ptr: *mut c_void, return_address: usize) {
    if ptr.is_null() {
        return;
    }
    if recycler::free(ptr.cast()) {
        launch::start_if_due(StartTrigger::LargeFree { return_address });
        return;
    }
    launch::start_if_due(StartTrigger::SampledFree { return_address });
    // SAFETY: not NULL, and the recycler found no block of its own: a live one of the backend's.
    unsafe { backend::free(ptr) }
}

/// # Safety
/// As C23's free_sized.
#[inline(always)]
pub unsafe fn free_sized(ptr: *mut c_void, _size: usize) {
    // SAFETY: NULL or live by free_sized's contract; the size is not used, so a wrong one does
    // no harm.
    unsafe { cfree(ptr) }
}

/// # Safety
/// As C23's free_aligned_sized.
#[inline(always)]
pub unsafe fn free_aligned_sized(ptr: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: NULL or live by free_aligned_sized's contract; the rest is not used.
    unsafe { cfree(ptr) }
}

/// # Safety
/// As the old cfree: free, under a name that other allocators leave out.
#[inline(always)]
pub unsafe fn cfree(ptr: *mut c_void) {
    match foreign::functions() {
        // SAFETY: NULL or live by cfree's contract, which is free's.
        None => unsafe { free(ptr) },
        // SAFETY: where another allocator serves, the block is its own.
        Some(theirs) => unsafe { theirs.free(ptr) },
    }
}

/// # Safety
/// As POSIX's posix_memalign: it returns its error. Where memory is short errno tells it too, as in glibc
/// and jemalloc, because programs call perror; else errno is left alone.
pub unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let saved = errno::get();
    // SAFETY: the alignment is a power of two.
    let ptr = unsafe { aligned(align, size) };
    if ptr.is_null() {
        errno::set(libc::ENOMEM);
        return libc::ENOMEM;
    }
    errno::set(saved);
    // SAFETY: the caller passes a place for the result.
    unsafe { out.write(ptr) };
    0
}

/// # Safety
/// As C's aligned_alloc. Other alignments than powers of two are rounded up: glibc did so until 2.38,
/// and no program that it served may fail under the preload.
pub unsafe fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: memalign takes any alignment.
    unsafe { memalign(align, size) }
}

/// # Safety
/// As glibc's memalign: the alignment is rounded up to a power of two.
pub unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.max(1).checked_next_power_of_two() {
        // SAFETY: the alignment is a power of two.
        Some(align) => unsafe { aligned(align, size) },
        None => fail(libc::EINVAL),
    }
}

/// # Safety
/// As valloc: page-aligned.
pub unsafe fn valloc(size: usize) -> *mut c_void {
    // SAFETY: a page is a power of two.
    unsafe { aligned(page_bytes(), size) }
}

/// # Safety
/// As pvalloc: whole pages.
pub unsafe fn pvalloc(size: usize) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(page_bytes()) {
        // SAFETY: valloc takes any size; this one is whole pages.
        Some(whole) => unsafe { valloc(whole) },
        None => fail(libc::ENOMEM),
    }
}

/// # Safety
/// `align` is a power of two.
unsafe fn aligned(align: usize, size: usize) -> *mut c_void {
    if size > isize::MAX as usize || align > isize::MAX as usize {
        return fail(libc::ENOMEM);
    }
    if let Some(theirs) = foreign::functions() {
        // SAFETY: a power of two by this function's contract.
        return unsafe { theirs.memalign(align, size) };
    }
    if !choose::is_ready() && align <= recycler::ALIGN_MAX {
        return recycler::alloc_early(size, false).cast();
    }
    choose::choose();
    // SAFETY: choose() has set the backend; whoever calls this passes a power of two.
    unsafe { large::memalign(align, size) }
}

/// # Safety
/// NULL or a live pointer of ours.
pub unsafe fn usable_size(ptr: *mut c_void) -> usize {
    if ptr.is_null() {
        return 0;
    }
    if recycler::may_be_block(ptr.cast()) {
        // SAFETY: not NULL, so live by this function's contract.
        return unsafe { large::usable_size(ptr) };
    }
    // SAFETY: no multiple of 2 MiB, so not the recycler's: live in the backend.
    unsafe { dispatch!(usable_size(ptr)) }
}

fn fail(error: c_int) -> *mut c_void {
    errno::set(error);
    ptr::null_mut()
}
