//! Reports unmapped pages to the registration caches of RDMA libraries: UCX, libfabric, Open MPI.
//!
//! Such a cache keeps the physical pages of a buffer until the buffer's addresses lose them. It learns of that by a hook:
//! it overwrites the first instructions of `munmap`, `mremap` and `madvise` in libc. It does not see the system calls of
//! this library. So this library calls libc's `madvise` before them, if that function was overwritten.
//!
//! Invariant: only ranges whose contents are not needed are reported. Pages whose contents are needed cannot be reported
//! and stay where they are (`are_installed`).

use std::ffi::{c_int, c_void};
use std::ptr::{self, null_mut};
use std::sync::atomic::{
    AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use crate::errno::SavedErrno;
use crate::loader::objects;

type Madvise = unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;

static MADVISE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The first instructions of libc's `madvise`, as libc has them.
static ORIGINAL: AtomicU64 = AtomicU64::new(0);

/// Called once, when the allocator is chosen: before a library can overwrite the function.
pub fn configure() {
    let [madvise] = objects::all_in_libc([c"madvise"]);
    if !madvise.is_null() {
        ORIGINAL.store(first_instructions(madvise), Relaxed);
        MADVISE.store(madvise.cast_mut(), Release);
    }
}

/// Each hook overwrites some of the first 8 bytes, at most behind an instruction of 4 bytes that marks a branch target.
fn first_instructions(function: *const c_void) -> u64 {
    // SAFETY: the function is longer, and libc's code is readable and never unloaded. Another thread may change it.
    u64::from_ne_bytes(unsafe { ptr::read_volatile(function.cast()) })
}

/// True while a library has overwritten libc's `madvise`.
#[inline]
pub fn are_installed() -> bool {
    overwritten().is_some()
}

#[inline]
fn overwritten() -> Option<Madvise> {
    let madvise = MADVISE.load(Acquire);
    if madvise.is_null() || first_instructions(madvise) == ORIGINAL.load(Relaxed) {
        return None;
    }
    // SAFETY: this is the address of libc's madvise, which has this type.
    unsafe { objects::cast(madvise) }
}

/// Drops the pages of a range through the hooks, if there are any. Keeps errno.
///
/// # Safety
/// The caller owns the range, and its contents are not needed.
#[inline]
pub unsafe fn report(address: usize, bytes: usize) {
    if let Some(madvise) = overwritten() {
        let _errno = SavedErrno::save();
        // SAFETY: the contents are not needed, by this function's contract.
        unsafe { madvise(address as *mut c_void, bytes, libc::MADV_DONTNEED) };
    }
}
