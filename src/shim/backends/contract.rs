//! The trait of a backend. A backend without one of its functions does not compile.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The alignment of every block from malloc, on every supported platform, except that jemalloc aligns blocks of up to 8
/// bytes to 8.
pub const MIN_ALIGN: usize = 16;

pub type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
pub type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
pub type Free = unsafe extern "C" fn(*mut c_void);

/// A function pointer that may be replaced by an equivalent one. Assembly jumps through it.
#[repr(transparent)]
pub struct Target<F>(AtomicPtr<()>, PhantomData<F>);

impl<F: Copy> Target<F> {
    /// # Safety
    /// `function` is a function of type `F`.
    pub const unsafe fn new(function: *mut ()) -> Self {
        Target(AtomicPtr::new(function), PhantomData)
    }

    /// Must be set before it is used.
    pub const fn unset() -> Self {
        Target(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    /// A thread may still see an older target, which is correct, too.
    #[inline(always)]
    pub fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        let target = self.0.load(Ordering::Relaxed);
        // SAFETY: only functions of type F are stored, and no unset target is read.
        unsafe { std::mem::transmute_copy(&target) }
    }

    pub fn set(&self, function: F) {
        self.0.store(Self::address(function), Ordering::Relaxed);
    }

    /// Sets the target unless it has changed from `old`.
    pub fn replace(&self, old: F, new: F) {
        let [old, new] = [old, new].map(Self::address);
        let _ = self
            .0
            .compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn address(function: F) -> *mut () {
        // SAFETY: F is a function pointer, which has the size of a data pointer (asserted in get()).
        unsafe { std::mem::transmute_copy(&function) }
    }

    /// # Safety
    /// The address is that of a function of type `F`.
    pub unsafe fn set_address(&self, address: *const c_void) {
        self.0.store(address.cast_mut().cast(), Ordering::Relaxed);
    }
}

/// The functions of a backend that the fast path jumps to.
#[derive(Clone, Copy)]
pub struct Entries {
    pub malloc: Malloc,
    pub calloc: Calloc,
    pub realloc: Realloc,
    pub free: Free,
}

/// `abi::heap` has checked sizes and alignments.
///
/// # Safety
/// As in C: pointers are live blocks of the same backend.
pub trait Backend {
    /// The targets of the fast path.
    fn entries() -> Entries;

    unsafe extern "C" fn malloc(size: usize) -> *mut c_void;
    unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void;
    /// The pointer is not null and the size is not zero.
    unsafe extern "C" fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void;
    unsafe extern "C" fn free(ptr: *mut c_void);
    /// `align` is a power of two.
    unsafe fn memalign(align: usize, size: usize) -> *mut c_void;
    unsafe fn usable_size(ptr: *mut c_void) -> usize;
    /// Returns free memory to the system. Keeps `pad` bytes if the backend supports it.
    fn trim(pad: usize) -> c_int;
    /// From now on no memory returns to the system unless the program asks for it.
    fn keep_memory();
    /// Live and free bytes; `None` if the backend does not know them.
    fn usage() -> Option<Usage>;
}

/// The memory of a backend.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Handed out to the program.
    pub live_bytes: u64,
    /// Free and, as far as the backend knows, not returned to the system.
    pub free_bytes: u64,
}
