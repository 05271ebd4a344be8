//! The promises of C and glibc for each function of the malloc family, in both modes: zero sizes, overflow,
//! alignment, errno. The fast path is one comparison and one jump; `large` handles large blocks.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::abi::{backend, foreign, large};
use crate::backends::choose::{self, dispatch};
use crate::launch::{self, StartTrigger};
use flarena_recycler as recycler;
use flarena_recycler::Contents;
use flarena_sys::errno;
use flarena_sys::proc::procfs::page_bytes;

/// A freed pointer with this alignment takes the cold path. Every large block and NULL have it, and one
/// small block in some thousands, which serves as a sample of the program's frees.
const SAMPLE_ALIGN: usize = 64 << 10;

/// Requests of this size and above leave the fast path, because the recycler may serve them. It is the
/// lowest value of `FLARENA_RECYCLE_MIN`.
const COLD_MIN_BYTES: usize = flarena_shared::defaults::RECYCLE_MIN_BYTES_LOWEST as usize;

/// # Safety
/// As C's malloc.
#[inline(always)]
pub unsafe fn malloc(size: usize) -> *mut c_void {
    if size >= COLD_MIN_BYTES {
        // SAFETY: large::malloc accepts any size.
        return unsafe { large::malloc(size) };
    }
    // SAFETY: a malloc accepts any size.
    unsafe { choose::MALLOC.get()(size) }
}

/// # Safety
/// As C's calloc.
#[inline(always)]
pub unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    // If the product overflows, either path fails with ENOMEM.
    if count.wrapping_mul(size) >= COLD_MIN_BYTES {
        // SAFETY: large::calloc checks the product.
        return unsafe { large::calloc(count, size) };
    }
    // SAFETY: a calloc checks the product.
    unsafe { choose::CALLOC.get()(count, size) }
}

/// # Safety
/// As C's realloc; `realloc(ptr, 0)` frees and returns NULL, as in glibc.
#[inline(always)]
pub unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    if ptr.is_null() {
        // SAFETY: realloc(NULL, n) is malloc(n).
        return unsafe { malloc(size) };
    }
    if size == 0 {
        // SAFETY: the block is live by realloc's contract and not used afterwards.
        unsafe { free(ptr) };
        return ptr::null_mut();
    }
    if size >= COLD_MIN_BYTES || recycler::may_be_block(ptr.cast()) {
        // SAFETY: the block is live by realloc's contract; neither argument is zero.
        return unsafe { large::realloc(ptr, size) };
    }
    // SAFETY: the pointer is no multiple of 2 MiB, so it belongs to the backend; neither argument is zero.
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
        // SAFETY: where another allocator serves, every block belongs to it.
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
    // SAFETY: the pointer is no multiple of 64 KiB, so it is neither NULL nor the recycler's. It is live in
    // the backend.
    unsafe { choose::FREE.get()(ptr) }
}

/// Reached by a jump from `free`, so the return address is that of free's caller; passes it as an argument.
/// If the compiler emits a call instead, the address lies in this library, which `launch` recognises.
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
    // SAFETY: the pointer is not NULL and not the recycler's, so it is live in the backend.
    unsafe { backend::free(ptr) }
}

/// # Safety
/// As C23's free_sized.
#[inline(always)]
pub unsafe fn free_sized(ptr: *mut c_void, _size: usize) {
    // SAFETY: NULL or live by free_sized's contract; the size is not used.
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
/// As the old cfree, which is free under a name that other allocators do not define.
#[inline(always)]
pub unsafe fn cfree(ptr: *mut c_void) {
    match foreign::functions() {
        // SAFETY: NULL or live by cfree's contract, which is free's.
        None => unsafe { free(ptr) },
        // SAFETY: where another allocator serves, every block belongs to it.
        Some(theirs) => unsafe { theirs.free(ptr) },
    }
}

/// # Safety
/// As POSIX's posix_memalign: it returns its error. Without memory it also sets errno, as glibc and jemalloc do,
/// because programs call perror. Otherwise errno does not change.
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
/// As C's aligned_alloc. An alignment that is no power of two is rounded up, as in glibc before 2.38, because
/// programs that work with it must not fail under the preload.
pub unsafe fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: memalign accepts any alignment.
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
        // SAFETY: valloc accepts any size.
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
        // SAFETY: `align` is a power of two by this function's contract.
        return unsafe { theirs.memalign(align, size) };
    }
    if !choose::is_ready() && align <= recycler::ALIGN_MAX {
        return recycler::alloc_early(size, Contents::Any).cast();
    }
    choose::choose();
    // SAFETY: choose() has set the backend; `align` is a power of two by this function's contract.
    unsafe { large::memalign(align, size) }
}

/// # Safety
/// NULL or a live block of this library.
pub unsafe fn usable_size(ptr: *mut c_void) -> usize {
    if ptr.is_null() {
        return 0;
    }
    if recycler::may_be_block(ptr.cast()) {
        // SAFETY: not NULL, so live by this function's contract.
        return unsafe { large::usable_size(ptr) };
    }
    // SAFETY: the pointer is no multiple of 2 MiB, so it is live in the backend.
    unsafe { dispatch!(usable_size(ptr)) }
}

fn fail(error: c_int) -> *mut c_void {
    errno::set(error);
    ptr::null_mut()
}
