//! jemalloc's own interface, where jemalloc serves. Where glibc does, nobody finds these names (`process::symbols`) but
//! an object that was bound to them before our constructor ran, by a weak reference: jemalloc sleeps then, and who woke it would wait
//! for ever. So each answers what it would where there is no memory, or no such name.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use tikv_jemalloc_sys as je;

use crate::abi::{backend, large};
use crate::choice::choose::{self, dispatch};
use crate::sites;
use flarena_recycler as recycler;

/// Functions of jemalloc's, passed on where it serves, and what each answers where it does not.
macro_rules! where_it_serves {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty, else $otherwise:expr;)*) => {$(
        /// # Safety
        /// As jemalloc's function of this name.
        pub unsafe fn $name($($argument: $type),*) -> $result {
            if !choose::is_jemalloc() {
                return $otherwise;
            }
            // SAFETY: jemalloc serves, and the arguments are this function's own.
            unsafe { je::$name($($argument),*) }
        }
    )*};
}

type Ptr = *mut c_void;

where_it_serves! {
    mallctl(name: *const c_char, old: Ptr, old_len: *mut usize, new: Ptr, new_len: usize) -> c_int,
        else libc::ENOENT;
    mallctlnametomib(name: *const c_char, mib: *mut usize, len: *mut usize) -> c_int, else libc::ENOENT;
    mallctlbymib(
        mib: *const usize, len: usize, old: Ptr, old_len: *mut usize, new: Ptr, new_len: usize
    ) -> c_int, else libc::ENOENT;
    mallocx(size: usize, flags: c_int) -> Ptr, else ptr::null_mut();
    nallocx(size: usize, flags: c_int) -> usize, else 0;
}

/// # Safety
/// As jemalloc's malloc_stats_print.
pub unsafe fn malloc_stats_print(
    write: Option<unsafe extern "C" fn(Ptr, *const c_char)>,
    opaque: Ptr,
    options: *const c_char,
) {
    if choose::is_jemalloc() {
        // SAFETY: jemalloc serves, and the arguments are malloc_stats_print's own.
        unsafe { je::malloc_stats_print(write, opaque, options) }
    }
}

// The others meet large blocks, too, where a program frees by them what malloc gave.

/// # Safety
/// As jemalloc's sallocx, whose flags change no answer.
pub unsafe fn sallocx(ptr: *const c_void, _flags: c_int) -> usize {
    // SAFETY: live by sallocx's contract.
    unsafe { large::usable_size(ptr.cast_mut()) }
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
    let _ = sites::forget_heap_block(ptr.cast());
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
    let _ = sites::forget_heap_block(ptr.cast());
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
        // SAFETY: no block of the recycler's, so jemalloc's, live by rallocx's contract.
        return backend::moved(ptr, || unsafe { je::rallocx(ptr, size, flags) });
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
