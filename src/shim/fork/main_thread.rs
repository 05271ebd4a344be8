//! The end of the main thread alone, by `pthread_exit` or cancellation: the process goes on, and ends with its
//! last thread. That must not be the governor, for which nobody waits and which no signal ends.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::governor;

/// A key with a value in the main thread only; its destructor runs when that thread ends, and not at exit.
static KEY: AtomicU32 = AtomicU32::new(0);
static HAS_KEY: AtomicBool = AtomicBool::new(false);

/// Called once by the constructor, which the main thread runs.
pub fn watch() {
    let mut key = 0;
    // SAFETY: the key is a place on this stack; the destructor is a function of this library, which is never
    // unloaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0 {
        KEY.store(key, Relaxed);
        HAS_KEY.store(true, Relaxed);
        follow_fork();
    }
}

/// The thread that forked is the child's main thread.
pub fn follow_fork() {
    if HAS_KEY.load(Relaxed) {
        // SAFETY: the key was made by watch() and is never given back. The value only has to be one.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), ptr::without_provenance(1)) };
    }
}

unsafe extern "C" fn ended(_: *mut c_void) {
    governor::end();
}
