//! libc's lock on its list of open files, which fork takes after the prepare handlers have run.
//!
//! Who reads a line holds its file and may want memory; who flushes all files holds the list and wants each
//! file; so malloc's locks may be taken after the list's only. glibc takes its own in this order.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::loader::symbols;

type Function = unsafe extern "C" fn();

static LOCK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static UNLOCK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static RESET: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Looks the functions up. Where a libc has them no longer, all here does nothing.
pub fn configure() {
    let [lock, unlock, reset] =
        [c"_IO_list_lock", c"_IO_list_unlock", c"_IO_list_resetlock"].map(|name| {
            // SAFETY: the functions take nothing and answer nothing.
            unsafe { symbols::lookup::<Function>(libc::RTLD_NEXT, name) }
        });
    if let (Some(lock), Some(unlock), Some(reset)) = (lock, unlock, reset) {
        RESET.store(reset as *mut (), Relaxed);
        UNLOCK.store(unlock as *mut (), Relaxed);
        LOCK.store(lock as *mut (), Relaxed);
    }
}

/// Its holder may take it again, as fork does.
pub fn lock_list() {
    call(&LOCK);
}

/// Only after `lock_list`, in the same thread.
pub fn unlock_list() {
    call(&UNLOCK);
}

/// In the child of a fork, whoever held it.
pub fn reset_list() {
    call(&RESET);
}

fn call(function: &AtomicPtr<()>) {
    let address = function.load(Relaxed);
    if address.is_null() {
        return;
    }
    // SAFETY: only configure() stores here, a Function each.
    let function: Function = unsafe { std::mem::transmute(address) };
    // SAFETY: they have no precondition but the order that the callers keep.
    unsafe { function() };
}
