//! The hot path's targets: one pointer for each of the four functions that programs call all the
//! time. Until the choice is made they lead to it; from then on straight into the backend, so that
//! a small malloc costs a comparison with a constant and one jump through memory.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::{backend, recycler};

pub type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
pub type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
pub type Free = unsafe extern "C" fn(*mut c_void);

/// The functions of a backend that the hot path jumps to.
#[derive(Clone, Copy)]
pub struct Entries {
    pub malloc: Malloc,
    pub calloc: Calloc,
    pub realloc: Realloc,
    pub free: Free,
}

/// A function pointer that is set once.
pub struct Target<F>(AtomicPtr<()>, PhantomData<F>);

impl<F: Copy> Target<F> {
    /// Any thread sees the first target or the final one; both are right.
    #[inline(always)]
    pub fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        let target = self.0.load(Relaxed);
        // SAFETY: only values of type F are stored: at their definition below, and by set().
        unsafe { std::mem::transmute_copy(&target) }
    }

    fn set(&self, function: F) {
        // SAFETY: F is a function pointer, which has the size of a data pointer (see get()).
        self.0
            .store(unsafe { std::mem::transmute_copy(&function) }, Relaxed);
    }
}

pub static MALLOC: Target<Malloc> = Target(AtomicPtr::new(first_malloc as *mut ()), PhantomData);
pub static CALLOC: Target<Calloc> = Target(AtomicPtr::new(first_calloc as *mut ()), PhantomData);
pub static REALLOC: Target<Realloc> = Target(AtomicPtr::new(first_realloc as *mut ()), PhantomData);
pub static FREE: Target<Free> = Target(AtomicPtr::new(first_free as *mut ()), PhantomData);

/// Called by the choice, once.
pub fn lead_to(entries: Entries) {
    MALLOC.set(entries.malloc);
    CALLOC.set(entries.calloc);
    REALLOC.set(entries.realloc);
    FREE.set(entries.free);
}

#[cold]
unsafe extern "C" fn first_malloc(size: usize) -> *mut c_void {
    if !backend::is_ready() {
        return recycler::alloc_early(size, false).cast();
    }
    // SAFETY: same contract; the choice has set the target.
    unsafe { MALLOC.get()(size) }
}

#[cold]
unsafe extern "C" fn first_calloc(count: usize, size: usize) -> *mut c_void {
    if !backend::is_ready() {
        // The hot path saw a small product; one that wrapped around gets no block.
        let total = count.saturating_mul(size);
        return recycler::alloc_early(total, true).cast();
    }
    // SAFETY: as above.
    unsafe { CALLOC.get()(count, size) }
}

#[cold]
unsafe extern "C" fn first_realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    backend::choose();
    // SAFETY: as above.
    unsafe { REALLOC.get()(ptr, size) }
}

#[cold]
unsafe extern "C" fn first_free(ptr: *mut c_void) {
    backend::choose();
    // SAFETY: as above.
    unsafe { FREE.get()(ptr) }
}
