//! Functions that this library exports and passes on.

use std::ffi::{c_int, c_void, CStr};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::errno;
use crate::loader::{dl, objects};

/// The function that a call would reach without this library: of another preload or of libc, which may be musl.
pub struct Next<F> {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F> Next<F> {
    /// # Safety
    /// `F` must be the type of a function pointer that fits every function of this name.
    pub const unsafe fn new(name: &'static CStr) -> Next<F> {
        Next {
            name,
            address: AtomicPtr::new(ptr::null_mut()),
            function: PhantomData,
        }
    }

    /// The constructor calls it: a signal handler may call the function, and a thread that waits for the loader.
    pub fn find(&self) -> Option<F> {
        // SAFETY: RTLD_NEXT is a handle that dlsym accepts.
        let mut found = unsafe { dl::symbol(libc::RTLD_NEXT, self.name) };
        if found.is_null() {
            found = objects::in_other_libc(self.name);
        }
        self.address.store(found.cast_mut(), Relaxed);
        // SAFETY: null or a function with this name, which `F` fits.
        unsafe { objects::cast(found) }
    }

    /// The constructor has found it, unless another constructor calls.
    fn get(&self) -> Option<F> {
        // SAFETY: null or a function with this name, which `F` fits.
        unsafe { objects::cast(self.address.load(Relaxed)) }.or_else(|| self.find())
    }

    /// Calls the function. Without one it fails as a system call that does not exist.
    pub fn call(&self, call: impl FnOnce(F) -> c_int) -> c_int {
        self.get().map_or_else(missing, call)
    }
}

fn missing() -> c_int {
    errno::set(libc::ENOSYS);
    -1
}
