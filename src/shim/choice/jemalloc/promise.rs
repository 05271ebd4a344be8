//! jemalloc maps with `MAP_NORESERVE`, so that the kernel promises it any size: 64 TiB on a laptop. A program
//! that asks by mistake, or to see whether it may, is then killed at the first touch, where under glibc
//! it gets ENOMEM. So the kernel is asked once more, as glibc would ask.

use std::ffi::c_void;
use std::ptr;

use rustix::mm::{self, MapFlags, ProtFlags};

use flarena_sys::errno;

/// Smaller blocks are never refused by themselves, and should cost nothing.
const DOUBTFUL_BYTES: usize = 1 << 30;

/// The block of this size that `allocate` makes; NULL and ENOMEM where the kernel would not promise as much.
#[inline(always)]
pub fn kept(size: usize, allocate: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if size >= DOUBTFUL_BYTES && !is_kept(size) {
        errno::set(libc::ENOMEM);
        return ptr::null_mut();
    }
    allocate()
}

#[cold]
fn is_kept(size: usize) -> bool {
    let readable = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped = unsafe { mm::mmap_anonymous(ptr::null_mut(), size, readable, MapFlags::PRIVATE) };
    match mapped {
        // SAFETY: mapped above, and nobody else has the address.
        Ok(start) => unsafe { mm::munmap(start, size) }.is_ok(),
        Err(_) => false,
    }
}
