//! Tells whether this process is a copy that was made without fork handlers: by the system call `clone` or
//! glibc's `clone` or `_Fork`.
//!
//! The kernel clears a page with `MADV_WIPEONFORK` in the copy. A vfork child shares its parent's memory and sees
//! no change. On kernels before 4.14 no copy is detected.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::proc::procfs;

/// The first byte of that page: false in a copy. Null until `detect`.
static IS_KNOWN: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());

/// From now on a copy of this process is detected. The constructor calls this before there are threads.
pub fn detect() {
    if IS_KNOWN.load(Relaxed).is_null() {
        IS_KNOWN.store(map_wiped_page().unwrap_or(ptr::null_mut()), Relaxed);
    }
    accept();
}

/// This process is no copy any more: its state has been reset. Makes no system call, which a filter may punish.
pub fn accept() {
    if let Some(is_known) = is_known() {
        is_known.store(true, Relaxed);
    }
}

#[inline]
pub fn is_copy() -> bool {
    is_known().is_some_and(|is_known| !is_known.load(Relaxed))
}

fn is_known() -> Option<&'static AtomicBool> {
    // SAFETY: null or the start of a page that holds zeros or a stored bool, and is never unmapped.
    unsafe { IS_KNOWN.load(Relaxed).as_ref() }
}

fn map_wiped_page() -> Option<*mut AtomicBool> {
    let bytes = procfs::page_bytes();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses a free address, and the advice is for the new page alone.
    unsafe {
        let page =
            rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE).ok()?;
        if rustix::mm::madvise(page, bytes, Advice::LinuxWipeOnFork).is_err() {
            let _ = rustix::mm::munmap(page, bytes);
            return None;
        }
        Some(page.cast())
    }
}
