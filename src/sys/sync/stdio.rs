//! libc's lock on its list of open files, which fork takes after the prepare handlers have run.
//!
//! A thread that reads a line holds the file's lock and may allocate. A thread that flushes all files holds
//! the list's lock and takes each file's. So malloc's locks must be taken after the list's, as in glibc.

use std::ffi::{c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::loader::objects;

type Function = unsafe extern "C" fn();

const NAMES: [&CStr; 3] = [c"_IO_list_resetlock", c"_IO_list_unlock", c"_IO_list_lock"];
static RESET: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static UNLOCK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static LOCK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks the functions up. If libc lacks one, every function of this module does nothing.
pub fn configure() {
    let found = objects::all_in_libc(NAMES);
    if !found.contains(&ptr::null()) {
        for (slot, address) in [&RESET, &UNLOCK, &LOCK].into_iter().zip(found) {
            slot.store(address.cast_mut(), Relaxed);
        }
    }
}

/// The lock is recursive; fork takes it again.
pub fn lock_list() {
    call(&LOCK);
}

/// Only after `lock_list`, in the same thread.
pub fn unlock_list() {
    call(&UNLOCK);
}

/// Resets the lock in the child of a fork, even if another thread held it.
pub fn reset_list() {
    call(&RESET);
}

fn call(function: &AtomicPtr<c_void>) {
    // SAFETY: null, or the address that `configure` stored of a function without parameters and result.
    let function: Option<Function> = unsafe { objects::cast(function.load(Relaxed)) };
    if let Some(function) = function {
        // SAFETY: the only precondition is the order of calls, which the callers keep.
        unsafe { function() };
    }
}
