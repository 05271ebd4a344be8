//! jemalloc's own interface, where jemalloc serves. Where glibc does, nobody finds these names (`process::symbols`) but
//! an object that was bound to them before our constructor ran, by a weak reference: jemalloc sleeps then, and who woke it would wait
//! for ever. So each answers what it would where there is no memory, or no such name.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use tikv_jemalloc_sys as je;

use crate::abi::{backend, large};
use crate::choice::choose::{self, dispatch};
use crate::recycler;
use crate::sites::Forgotten;

/// # Safety
/// As jemalloc's mallctl.
pub unsafe fn mallctl(
    name: *const c_char,
    old: *mut c_void,
    old_len: *mut usize,
    new: *mut c_void,
    new_len: usize,
) -> c_int {
    if !choose::is_jemalloc() {
        return libc::ENOENT;
    }
    // SAFETY: jemalloc serves, and the arguments are mallctl's own.
    unsafe { je::mallctl(name, old, old_len, new, new_len) }
}

/// # Safety
/// As jemalloc's mallctlnametomib.
pub unsafe fn mallctlnametomib(name: *const c_char, mib: *mut usize, len: *mut usize) -> c_int {
    if !choose::is_jemalloc() {
        return libc::ENOENT;
    }
    // SAFETY: jemalloc serves, and the arguments are mallctlnametomib's own.
    unsafe { je::mallctlnametomib(name, mib, len) }
}

/// # Safety
/// As jemalloc's mallctlbymib.
pub unsafe fn mallctlbymib(
    mib: *const usize,
    len: usize,
    old: *mut c_void,
    old_len: *mut usize,
    new: *mut c_void,
    new_len: usize,
) -> c_int {
    if !choose::is_jemalloc() {
        return libc::ENOENT;
    }
    // SAFETY: jemalloc serves, and the arguments are mallctlbymib's own.
    unsafe { je::mallctlbymib(mib, len, old, old_len, new, new_len) }
}

/// # Safety
/// As jemalloc's malloc_stats_print.
pub unsafe fn malloc_stats_print(
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    opaque: *mut c_void,
    options: *const c_char,
) {
    if choose::is_jemalloc() {
        // SAFETY: jemalloc serves, and the arguments are malloc_stats_print's own.
        unsafe { je::malloc_stats_print(write, opaque, options) }
    }
}

/// # Safety
/// As jemalloc's mallocx.
pub unsafe fn mallocx(size: usize, flags: c_int) -> *mut c_void {
    if !choose::is_jemalloc() {
        return ptr::null_mut();
    }
    // SAFETY: jemalloc serves, and the arguments are mallocx's own.
    unsafe { je::mallocx(size, flags) }
}

/// # Safety
/// As jemalloc's nallocx.
pub unsafe fn nallocx(size: usize, flags: c_int) -> usize {
    if !choose::is_jemalloc() {
        return 0;
    }
    // SAFETY: jemalloc serves, and the arguments are nallocx's own.
    unsafe { je::nallocx(size, flags) }
}

// The others meet large blocks, too, where a program frees by them what malloc gave.

/// # Safety
/// As jemalloc's sallocx.
pub unsafe fn sallocx(ptr: *const c_void, flags: c_int) -> usize {
    match recycler::usable_size(ptr.cast()) {
        Some(size) => size,
        // SAFETY: no block of the recycler's, so the backend's, as sallocx's contract says of
        // every other.
        None if !choose::is_jemalloc() => unsafe { dispatch!(usable_size(ptr.cast_mut())) },
        // SAFETY: no block of the recycler's, and jemalloc serves: so jemalloc's.
        None => unsafe { je::sallocx(ptr, flags) },
    }
}

/// # Safety
/// As jemalloc's dallocx.
pub unsafe fn dallocx(ptr: *mut c_void, flags: c_int) {
    if large::free(ptr) {
        return;
    }
    if !choose::is_jemalloc() {
        // SAFETY: the recycler found no block of its own, so it is the backend's, live by dallocx's contract.
        return unsafe { backend::free(ptr) };
    }
    let _ = backend::forget(ptr);
    // SAFETY: no block of the recycler's, and jemalloc serves: so jemalloc's, live by dallocx's contract.
    unsafe { je::dallocx(ptr, flags) }
}

/// # Safety
/// As jemalloc's sdallocx.
pub unsafe fn sdallocx(ptr: *mut c_void, size: usize, flags: c_int) {
    if large::free(ptr) {
        return;
    }
    if !choose::is_jemalloc() {
        // SAFETY: the recycler found no block of its own, so it is the backend's, live by sdallocx's contract.
        return unsafe { backend::free(ptr) };
    }
    let _ = backend::forget(ptr);
    // SAFETY: no block of the recycler's, and jemalloc serves: so jemalloc's, live and of this size by sdallocx's contract.
    unsafe { je::sdallocx(ptr, size, flags) }
}

/// # Safety
/// As jemalloc's rallocx.
pub unsafe fn rallocx(ptr: *mut c_void, size: usize, flags: c_int) -> *mut c_void {
    if !choose::is_jemalloc() {
        return ptr::null_mut();
    }
    let Some(old_size) = recycler::usable_size(ptr.cast()) else {
        let forgotten = backend::forget(ptr);
        // SAFETY: no block of the recycler's, so jemalloc's, live by rallocx's contract.
        let new = unsafe { je::rallocx(ptr, size, flags) };
        if new.is_null() {
            forgotten.into_iter().for_each(Forgotten::put_back);
        }
        return new;
    };
    // SAFETY: jemalloc takes any size but zero, which is the caller's to avoid.
    let new = unsafe { je::mallocx(size, flags) };
    if !new.is_null() {
        // SAFETY: both blocks have at least as many bytes and are distinct.
        unsafe { ptr::copy_nonoverlapping(ptr.cast::<u8>(), new.cast(), old_size.min(size)) };
        recycler::free(ptr.cast());
    }
    new
}

/// # Safety
/// As jemalloc's xallocx: resizes in place or not at all, and answers the size.
pub unsafe fn xallocx(ptr: *mut c_void, size: usize, extra: usize, flags: c_int) -> usize {
    match recycler::usable_size(ptr.cast()) {
        Some(unchanged) => unchanged,
        // SAFETY: no block of the recycler's, so the backend's, live by xallocx's contract.
        None if !choose::is_jemalloc() => unsafe { dispatch!(usable_size(ptr)) },
        // SAFETY: no block of the recycler's, so jemalloc's, live by xallocx's contract.
        None => unsafe { je::xallocx(ptr, size, extra, flags) },
    }
}
