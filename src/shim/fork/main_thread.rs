//! Ends the governor when the main thread ends alone, by `pthread_exit` or cancellation. The process then
//! ends with its last thread, which must not be the governor.

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

use crate::launch;
use flarena_sys::{proc::procfs, seccomp};

/// A key with a value in the main thread only. Its destructor runs when that thread ends, but not at exit.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Called once by the constructor, which the main thread runs.
pub fn watch() {
    let mut key = 0;
    // SAFETY: `key` is valid for the write, and the destructor belongs to this library, which is never unloaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0 {
        KEY.get_or_init(|| key);
        follow_fork();
    }
}

/// Called in a forked child, whose main thread is the thread that forked.
pub fn follow_fork() {
    if let Some(key) = KEY.get() {
        // SAFETY: watch() created the key, which is never deleted. The value is not null and never dereferenced.
        unsafe { libc::pthread_setspecific(*key, ptr::without_provenance(1)) };
    }
}

unsafe extern "C" fn ended(_: *mut c_void) {
    // After the program restricted itself it has no governor, and `end` would open files.
    if seccomp::allows_common_calls() && !launch::end() && procfs::threads() == Some(2) {
        // This thread ended in a signal handler that interrupted malloc. It keeps a lock, for which the
        // governor waits for ever. libc ends a process in this way when its last thread ends.
        // SAFETY: only the governor runs beside this thread, and it takes no part in the exit handlers.
        unsafe { libc::exit(0) };
    }
}
