//! Tells by the return address whether the program or libc itself made a call.
//!
//! A `free` of the program may start the governor's thread. A `free` by libc may not: it may be inside
//! `pthread_create` or `pthread_join`, with locks held that a new thread needs.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::loader::{glibc, objects};

/// First and last address of libc, libpthread (a separate library before glibc 2.34), the loader and
/// this library.
static RANGES: [[AtomicUsize; 2]; 4] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; 4];

/// The constructor calls it once, with an address inside this library.
pub fn configure(own_address: *const c_void) {
    let addresses = [
        objects::in_libc(c"__libc_malloc"),
        libc::pthread_create as *const c_void,
        glibc::stack_end().cast(),
        own_address,
    ];
    for (range, address) in RANGES.iter().zip(addresses) {
        let (first, last) = objects::extent_of(address).unwrap_or((0, usize::MAX));
        range[0].store(first, Relaxed);
        range[1].store(last, Relaxed);
    }
}

/// True if the address is in the program or one of its libraries. False until [`configure`] has run.
pub fn is_in_program(return_address: usize) -> bool {
    RANGES.iter().all(|[first, last]| {
        let (first, last) = (first.load(Relaxed), last.load(Relaxed));
        last != 0 && !(first..=last).contains(&return_address)
    })
}
