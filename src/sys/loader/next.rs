//! Functions that this library exports and passes on.

use std::ffi::{c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::loader::{dl, objects};

/// The function that a call would reach without this library: of another preload or of libc, which may be musl.
pub struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Next {
        let address = AtomicPtr::new(ptr::null_mut());
        Next { name, address }
    }

    /// Null if there is none. The constructor calls it: a signal handler may call the function, and a thread that
    /// waits for the loader.
    pub fn find(&self) -> *const c_void {
        // SAFETY: RTLD_NEXT is a handle that dlsym accepts.
        let mut found = unsafe { dl::symbol(libc::RTLD_NEXT, self.name) };
        if found.is_null() {
            found = objects::in_other_libc(self.name);
        }
        self.address.store(found.cast_mut(), Relaxed);
        found
    }

    /// The constructor has found it, unless another constructor calls.
    pub fn get(&self) -> *const c_void {
        match self.address.load(Relaxed) {
            unknown if unknown.is_null() => self.find(),
            found => found,
        }
    }
}
