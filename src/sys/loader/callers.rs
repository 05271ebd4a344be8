//! Who called us: the program, or libc itself in the middle of something.
//!
//! The governor's thread may be started from a `free` of the program's, but not from one that
//! libc makes on its own behalf: that may sit inside `pthread_create` or `pthread_join`, under
//! locks that a new thread needs.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{env, loader::objects};

/// First and last address of libc, libpthread (part of libc since 2.34), the loader, ourselves.
static RANGES: [[AtomicUsize; 2]; 4] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; 4];

extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
}

/// Called once by the constructor, with an address of our own.
pub fn configure(ours: *const c_void) {
    let addresses = [
        __libc_malloc as *const c_void,
        libc::pthread_create as *const c_void,
        env::loader_address(),
        ours,
    ];
    for (range, address) in RANGES.iter().zip(addresses) {
        let (first, last) = objects::extent_of(address).unwrap_or((0, usize::MAX));
        range[0].store(first, Relaxed);
        range[1].store(last, Relaxed);
    }
}

/// True when a call that returns to this address was made by the program or one of its libraries.
/// False until [`configure`] has run.
pub fn is_program(return_address: usize) -> bool {
    RANGES.iter().all(|[first, last]| {
        let (first, last) = (first.load(Relaxed), last.load(Relaxed));
        last != 0 && !(first..=last).contains(&return_address)
    })
}
