//! libc's lock on its list of open files, which fork takes after the prepare handlers have run.
//!
//! A thread that reads a line holds the file's lock and may allocate. A thread that flushes all files holds
//! the list's lock and takes each file's. So malloc's locks must be taken after the list's, as in glibc.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::loader::objects;

type Function = unsafe extern "C" fn();

static LOCK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static UNLOCK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static RESET: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Looks the functions up. If libc lacks one, every function of this module does nothing.
pub fn configure() {
    let [lock, unlock, reset] =
        objects::all_in_libc([c"_IO_list_lock", c"_IO_list_unlock", c"_IO_list_resetlock"])
            // SAFETY: the functions have no parameters and no result.
            .map(|address| unsafe { objects::cast::<Function>(address) });
    if let (Some(lock), Some(unlock), Some(reset)) = (lock, unlock, reset) {
        RESET.store(reset as *mut (), Relaxed);
        UNLOCK.store(unlock as *mut (), Relaxed);
        LOCK.store(lock as *mut (), Relaxed);
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

fn call(function: &AtomicPtr<()>) {
    let address = function.load(Relaxed);
    if address.is_null() {
        return;
    }
    // SAFETY: the address is not null, so `configure` stored a `Function` here.
    let function: Function = unsafe { std::mem::transmute(address) };
    // SAFETY: the only precondition is the order of calls, which the callers keep.
    unsafe { function() };
}
