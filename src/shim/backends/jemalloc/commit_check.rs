//! Refuses huge blocks that the kernel would not commit.
//!
//! jemalloc maps with `MAP_NORESERVE`, so the kernel grants any size: 64 TiB on a laptop. A program that requests
//! too much is then killed at the first touch, where glibc returns NULL. So a large request is first tried with a
//! mapping like glibc's.

use std::ffi::c_void;
use std::ptr;

use rustix::mm::{self, MapFlags, ProtFlags};

use flarena_recycler as recycler;
use flarena_sys::errno;

/// Smaller blocks are not tested, so that they cost nothing.
const TESTED_BYTES: usize = 1 << 30;

/// Runs `allocate`, or returns NULL with ENOMEM if the kernel would not commit `size` bytes.
#[inline(always)]
pub fn alloc_if_backed(size: usize, allocate: impl Fn() -> *mut c_void) -> *mut c_void {
    let can_commit_after_release = || recycler::release_addresses() && can_commit(size);
    if size >= TESTED_BYTES && !can_commit(size) && !can_commit_after_release() {
        errno::set(libc::ENOMEM);
        return ptr::null_mut();
    }
    allocate()
}

#[cold]
fn can_commit(size: usize) -> bool {
    let readable = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped = unsafe { mm::mmap_anonymous(ptr::null_mut(), size, readable, MapFlags::PRIVATE) };
    // SAFETY: the range was mapped above and is not used.
    mapped.is_ok_and(|start| unsafe { mm::munmap(start, size) }.is_ok())
}
