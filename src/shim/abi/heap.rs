//! The promises of C and glibc for each function of the malloc family, in both modes: zero sizes, overflow,
//! alignment, errno.
//!
//! The fast path is one comparison and one jump. The functions named `_large` come after it: the recycler serves
//! large blocks, or the backend if the recycler cannot.

use std::ffi::c_int;
use std::ptr;

use crate::abi::backend::{self, pass_caller, UNKNOWN_CALLER};
use crate::abi::foreign::{self, fail, Name};
use crate::abi::Ptr;
use crate::at_limit;
use crate::backends::choose::{self, dispatch};
use crate::launch::{self, StartTrigger};
use crate::memory_limit;
use flarena_recycler as recycler;
use flarena_recycler::{Contents, Realloc};
use flarena_sites as sites;
use flarena_sys::loader::glibc;
use flarena_sys::proc::procfs::page_bytes;
use flarena_sys::{attention, errno, headroom, limits};

/// A freed pointer without any of these bits takes the cold path: every large block, NULL, and the small blocks in the
/// first 4 KiB of each 512 KiB. These are a sample of the program's frees. A mask of the lowest bits would miss heaps whose
/// blocks have one size, because their addresses may have the same remainder.
const COLD_MASK: usize = (512 << 10) - (4 << 10);

/// Requests of this size and above leave the fast path, because the recycler may serve them. It is the
/// lowest value of `FLARENA_RECYCLE_MIN`.
const COLD_MIN_BYTES: usize = flarena_shared::defaults::RECYCLE_MIN_BYTES_LOWEST as usize;

/// # Safety
/// As C's malloc.
#[inline(always)]
pub unsafe fn malloc(size: usize) -> Ptr {
    if size >= COLD_MIN_BYTES {
        // SAFETY: a malloc accepts any size.
        return unsafe { malloc_large(size) };
    }
    // SAFETY: a malloc accepts any size.
    unsafe { choose::MALLOC.get()(size) }
}

/// # Safety
/// As C's calloc.
#[inline(always)]
pub unsafe fn calloc(count: usize, size: usize) -> Ptr {
    // If the product overflows, either path fails with ENOMEM.
    if count.wrapping_mul(size) >= COLD_MIN_BYTES {
        // SAFETY: calloc_large checks the product.
        return unsafe { calloc_large(count, size) };
    }
    // SAFETY: a calloc checks the product.
    unsafe { choose::CALLOC.get()(count, size) }
}

/// # Safety
/// As C's realloc; `realloc(ptr, 0)` frees and returns NULL, as in glibc.
#[inline(always)]
pub unsafe fn realloc(ptr: Ptr, size: usize) -> Ptr {
    if ptr.is_null() {
        // SAFETY: realloc(NULL, n) is malloc(n).
        return unsafe { malloc(size) };
    }
    if size == 0 {
        // SAFETY: the block is live by realloc's contract and not used afterwards.
        return unsafe { realloc_to_nothing(ptr) };
    }
    if size >= COLD_MIN_BYTES || recycler::may_be_block(ptr.cast()) {
        // SAFETY: the block is live by realloc's contract; neither argument is zero.
        return unsafe { realloc_large(ptr, size) };
    }
    // SAFETY: the pointer is no multiple of 2 MiB, so it belongs to the backend; neither argument is zero.
    unsafe { choose::REALLOC.get()(ptr, size) }
}

/// # Safety
/// A live block, which is not used afterwards.
#[cold]
unsafe fn realloc_to_nothing(ptr: Ptr) -> Ptr {
    if !glibc::is_here() {
        // musl returns a block.
        // SAFETY: the block is live in the backend, which is the program's libc.
        return unsafe { choose::REALLOC.get()(ptr, 0) };
    }
    // SAFETY: the block is live by this function's contract.
    unsafe { free(ptr) };
    ptr::null_mut()
}

/// # Safety
/// As BSD's reallocarray.
pub unsafe fn reallocarray(ptr: Ptr, count: usize, size: usize) -> Ptr {
    let Some(total) = count.checked_mul(size) else {
        return fail(libc::ENOMEM);
    };
    match foreign::instead_of(Name::Reallocarray) {
        // SAFETY: NULL or live by reallocarray's contract, and the product did not overflow.
        None => unsafe { realloc(ptr, total) },
        // SAFETY: where another allocator serves, every block belongs to it.
        Some(theirs) => unsafe { theirs.realloc(ptr, total) },
    }
}

/// # Safety
/// As C's free.
#[inline(always)]
pub unsafe fn free(ptr: Ptr) {
    if ptr as usize & COLD_MASK == 0 {
        // SAFETY: NULL or live by free's contract, which is free_sampled's.
        return unsafe { free_sampled(ptr) };
    }
    // SAFETY: the pointer is no multiple of 2 MiB, so it is neither NULL nor the recycler's. It is live in
    // the backend.
    unsafe { choose::FREE.get()(ptr) }
}

pass_caller! {
    /// Reached by a jump from `free`, so the return address is that of free's caller. If the compiler emits a call instead,
    /// the address lies in this library, which `launch` recognises.
    #[cold]
    fn free_sampled(ptr: Ptr) = free_cold, "rsi", "x1";
}

/// # Safety
/// As C's free.
#[cold]
unsafe extern "C" fn free_cold(ptr: Ptr, return_address: usize) {
    if ptr.is_null() {
        return;
    }
    if recycler::free(ptr.cast()) {
        if attention::may_want(attention::GOVERNOR) {
            launch::start_if_due(StartTrigger::LargeFree { return_address });
        }
        return;
    }
    launch::start_if_due(StartTrigger::SampledFree { return_address });
    // SAFETY: the pointer is not NULL and not the recycler's, so it is live in the backend.
    unsafe { backend::free(ptr) }
}

/// # Safety
/// As C23's free_sized.
#[inline(always)]
pub unsafe fn free_sized(ptr: Ptr, _size: usize) {
    // SAFETY: NULL or live by free_sized's contract; the size is not used.
    unsafe { free_as(Name::FreeSized, ptr) }
}

/// # Safety
/// As C23's free_aligned_sized.
#[inline(always)]
pub unsafe fn free_aligned_sized(ptr: Ptr, _align: usize, _size: usize) {
    // SAFETY: NULL or live by free_aligned_sized's contract; the rest is not used.
    unsafe { free_as(Name::FreeAlignedSized, ptr) }
}

/// # Safety
/// As the old cfree.
#[inline(always)]
pub unsafe fn cfree(ptr: Ptr) {
    // SAFETY: NULL or live by cfree's contract.
    unsafe { free_as(Name::Cfree, ptr) }
}

/// # Safety
/// As C's free.
#[inline(always)]
unsafe fn free_as(name: Name, ptr: Ptr) {
    match foreign::instead_of(name) {
        // SAFETY: NULL or live by this function's contract.
        None => unsafe { free(ptr) },
        // SAFETY: where another allocator serves, every block belongs to it.
        Some(theirs) => unsafe { theirs.free(ptr) },
    }
}

/// # Safety
/// As POSIX's posix_memalign: it returns its error. Without memory it also sets errno, as glibc and jemalloc do,
/// because programs call perror. Otherwise errno does not change.
pub unsafe fn posix_memalign(out: *mut Ptr, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<Ptr>()) {
        return libc::EINVAL;
    }
    let saved = errno::get();
    // SAFETY: the alignment is a power of two.
    let ptr = unsafe { aligned(Name::PosixMemalign, align, size) };
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
pub unsafe fn aligned_alloc(align: usize, size: usize) -> Ptr {
    aligned_up(Name::AlignedAlloc, align, size)
}

/// # Safety
/// As glibc's memalign: the alignment is rounded up to a power of two.
pub unsafe fn memalign(align: usize, size: usize) -> Ptr {
    aligned_up(Name::Memalign, align, size)
}

/// # Safety
/// As valloc: page-aligned.
pub unsafe fn valloc(size: usize) -> Ptr {
    // SAFETY: a page is a power of two.
    unsafe { aligned(Name::Valloc, page_bytes(), size) }
}

/// # Safety
/// As pvalloc: whole pages.
pub unsafe fn pvalloc(size: usize) -> Ptr {
    match size.max(1).checked_next_multiple_of(page_bytes()) {
        // SAFETY: a page is a power of two.
        Some(whole) => unsafe { aligned(Name::Pvalloc, page_bytes(), whole) },
        None => fail(libc::ENOMEM),
    }
}

fn aligned_up(name: Name, align: usize, size: usize) -> Ptr {
    match align.max(1).checked_next_power_of_two() {
        // SAFETY: the alignment is a power of two.
        Some(align) => unsafe { aligned(name, align, size) },
        None => fail(libc::EINVAL),
    }
}

/// # Safety
/// `align` is a power of two.
unsafe fn aligned(name: Name, align: usize, size: usize) -> Ptr {
    if size > isize::MAX as usize || align > isize::MAX as usize {
        return fail(libc::ENOMEM);
    }
    if let Some(theirs) = foreign::instead_of(name) {
        // SAFETY: `align` is a power of two by this function's contract.
        return unsafe { theirs.memalign(align, size) };
    }
    if !choose::is_ready() && align <= recycler::ALIGN_MAX {
        return recycler::alloc_early(size, Contents::Any).cast();
    }
    choose::choose();
    if is_refused(size) {
        return fail(libc::ENOMEM);
    }
    if recycler::accepts(size, align) {
        let block = serve(recycler::alloc(size, Contents::Any), UNKNOWN_CALLER);
        if !block.is_null() {
            return block;
        }
    }
    // SAFETY: choose() has set the backend; `align` is a power of two by this function's contract.
    unsafe { backend::memalign(align, size) }
}

/// # Safety
/// NULL or a live block of this library.
pub unsafe fn usable_size(ptr: Ptr) -> usize {
    if ptr.is_null() {
        return 0;
    }
    match recycler::usable_size(ptr.cast()) {
        Some(size) => size,
        // SAFETY: the pointer is not NULL and not the recycler's, so it is live in the backend.
        None => unsafe { dispatch!(usable_size(ptr)) },
    }
}

// Large blocks.

/// A block of the recycler, which also serves every size before there is a backend. `None`: the backend is to serve.
#[inline(always)]
fn from_recycler(bytes: usize, contents: Contents, caller: usize) -> Option<Ptr> {
    // The recycler accepts no size before a backend is chosen, and the first call of the process chooses one.
    if recycler::accepts(bytes, 1) || choose::is_ready() && recycler::accepts(bytes, 1) {
        let block = serve(recycler::alloc(bytes, contents), caller);
        if !block.is_null() {
            return Some(block);
        }
    }
    (!choose::is_ready()).then(|| recycler::alloc_early(bytes, contents).cast())
}

/// True if the call must fail, as so much new memory does not fit below the memory limit.
#[inline]
fn is_refused(size: usize) -> bool {
    attention::may_want(attention::WATCHED) && at_limit::refuses(size)
}

/// Hands a block to the program.
fn serve(block: *mut u8, caller: usize) -> Ptr {
    if !attention::is_quiet() && !block.is_null() {
        attend(block, caller);
    }
    block.cast()
}

/// Notes the site of a block, starts a governor and releases free memory, if that is due.
#[cold]
fn attend(block: *mut u8, caller: usize) {
    attention::settle(attention::SITES, sites::is_on);
    attention::settle(attention::GOVERNOR, launch::wants_calls);
    attention::settle(attention::HEADROOM, headroom::is_used_up);
    attention::settle(attention::WATCHED, headroom::is_watched);
    attention::settle(attention::ROOM, limits::is_any_set);
    if sites::is_on() {
        sites::note(block, caller);
    }
    launch::start_if_due(StartTrigger::LargeBlock);
    memory_limit::release_if_due();
}

pass_caller! {
    /// The first allocation of the process, or one of at least 64 KiB, which the recycler may serve. Reached by a
    /// jump, so the return address is that of malloc's caller. The same holds for calloc and realloc.
    ///
    /// # Safety
    /// As C's malloc.
    #[cold]
    fn malloc_large(size: usize) -> Ptr = malloc_large_for, "rsi", "x1";

    /// # Safety
    /// As C's calloc.
    #[cold]
    fn calloc_large(count: usize, size: usize) -> Ptr = calloc_large_for, "rdx", "x2";

    /// `old` may be a block of the recycler, or the recycler may serve `size`.
    ///
    /// # Safety
    /// As C's realloc; neither argument is zero.
    #[cold]
    fn realloc_large(old: Ptr, size: usize) -> Ptr = realloc_large_for, "rdx", "x2";
}

unsafe extern "C" fn malloc_large_for(size: usize, caller: usize) -> Ptr {
    if is_refused(size) {
        return fail(libc::ENOMEM);
    }
    match from_recycler(size, Contents::Any, caller) {
        Some(block) => block,
        // SAFETY: a backend is chosen.
        None => unsafe { backend::malloc(size, caller) },
    }
}

unsafe extern "C" fn calloc_large_for(count: usize, size: usize, caller: usize) -> Ptr {
    match from_recycler(count.saturating_mul(size), Contents::Zeroed, caller) {
        Some(block) => block,
        // SAFETY: a backend is chosen.
        None => unsafe { backend::calloc(count, size, caller) },
    }
}

unsafe extern "C" fn realloc_large_for(old: Ptr, size: usize, caller: usize) -> Ptr {
    if attention::may_want(attention::WATCHED) && at_limit::may_refuse(size) {
        // SAFETY: the block is live by realloc's contract.
        let old_bytes = unsafe { usable_size(old) };
        if at_limit::refuses(size.saturating_sub(old_bytes)) {
            return fail(libc::ENOMEM);
        }
    }
    match recycler::realloc(old.cast(), size) {
        Realloc::Done(start) => serve(start as *mut u8, caller),
        // The size is too small for the recycler, or it has no memory; the backend may have some.
        // SAFETY: the block belongs to the recycler.
        Realloc::MoveToBackend | Realloc::Failed => unsafe { move_to_backend(old, size, caller) },
        // SAFETY: the block belongs to the backend.
        Realloc::NotOurs => unsafe { grow_out_of_backend(old, size, caller) },
    }
}

unsafe fn move_to_backend(old: Ptr, size: usize, caller: usize) -> Ptr {
    let new: Ptr = if choose::is_ready() {
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
    free_large(old);
    new
}

/// Frees a block of the recycler for the program; false if it is none. Unlike `free_cold`, its callers are
/// never libc itself, so the governor may start here without checking the return address.
pub fn free_large(ptr: Ptr) -> bool {
    let freed = recycler::free(ptr.cast());
    if freed && attention::may_want(attention::GOVERNOR) {
        launch::start_if_due(StartTrigger::LargeBlock);
    }
    freed
}

unsafe fn grow_out_of_backend(old: Ptr, size: usize, caller: usize) -> Ptr {
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
