//! glibc's settings and statistics functions, in both modes.

use std::ffi::c_int;
use std::ptr;

use tikv_jemalloc_sys as je;

use crate::backends::choose::{self, dispatch};
use crate::backends::glibc;
use crate::backends::mallinfo::{Mallinfo, Mallinfo2};
use flarena_recycler as recycler;
use flarena_sys::thread::cancellation::Cancellation;

/// # Safety
/// None; C's mallinfo2.
pub unsafe fn mallinfo2() -> Mallinfo2 {
    let small = backend_mallinfo2();
    let large = recycler::stats();
    // hblks and hblkhd count mappings, and each large block is one.
    Mallinfo2 {
        hblks: small.hblks + large.live_blocks as usize,
        hblkhd: small.hblkhd + large.live_bytes as usize,
        fordblks: small.fordblks + (large.cached_bytes + large.slack_bytes) as usize,
        ..small
    }
}

fn backend_mallinfo2() -> Mallinfo2 {
    if !choose::is_jemalloc() {
        return glibc::mallinfo2().unwrap_or_default();
    }
    let usage = dispatch!(usage()).unwrap_or_default();
    Mallinfo2 {
        arena: (usage.live_bytes + usage.free_bytes) as usize,
        uordblks: usage.live_bytes as usize,
        fordblks: usage.free_bytes as usize,
        ..Mallinfo2::default()
    }
}

/// # Safety
/// None; C's mallinfo.
pub unsafe fn mallinfo() -> Mallinfo {
    // SAFETY: mallinfo2 has no precondition.
    Mallinfo::from(unsafe { mallinfo2() })
}

/// In malloc.h: the byte that fills each block.
const M_PERTURB: c_int = -6;

/// Calls glibc's mallopt in both modes, because glibc's heap serves libraries that were loaded with
/// RTLD_DEEPBIND.
///
/// # Safety
/// None; C's mallopt.
pub unsafe fn mallopt(parameter: c_int, value: c_int) -> c_int {
    if parameter == M_PERTURB && value != 0 && !choose::is_jemalloc() {
        // Only glibc fills its blocks.
        recycler::disable();
    }
    // SAFETY: the symbol has this signature and takes any numbers.
    glibc::functions()
        .mallopt
        .map_or(0, |f| unsafe { f(parameter, value) })
}

/// # Safety
/// None; C's malloc_stats writes to stderr.
pub unsafe fn malloc_stats() {
    if choose::is_jemalloc() {
        // SAFETY: without a callback jemalloc writes to stderr; NULL options mean all.
        unsafe { je::malloc_stats_print(None, ptr::null_mut(), ptr::null()) };
    } else if let Some(f) = glibc::functions().malloc_stats {
        // SAFETY: the symbol has this signature.
        unsafe { f() };
    }
}

/// # Safety
/// `stream` is an open FILE; C's malloc_info writes XML to it.
pub unsafe fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    // fputs is a cancellation point: a cancelled thread would leak the text.
    let _cancellation = Cancellation::put_off();
    if !choose::is_jemalloc() {
        // SAFETY: malloc.h declares this type, and `stream` is an open FILE by this function's contract.
        return glibc::functions()
            .malloc_info
            .map_or(-1, |f| unsafe { f(options, stream) });
    }
    if options != 0 {
        return libc::EINVAL;
    }
    let usage = dispatch!(usage()).unwrap_or_default();
    let (free_bytes, total) = (usage.free_bytes, usage.live_bytes + usage.free_bytes);
    let xml = format!(
        "<malloc version=\"1\">\n<total type=\"rest\" count=\"0\" size=\"{free_bytes}\"/>\n\
         <system type=\"current\" size=\"{total}\"/>\n</malloc>\n\0"
    );
    // SAFETY: the text is NUL-terminated and `stream` an open FILE by this function's contract.
    match unsafe { libc::fputs(xml.as_ptr().cast(), stream) } {
        ..0 => -1,
        _ => 0,
    }
}
