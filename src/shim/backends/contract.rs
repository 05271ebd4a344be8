//! The trait of a backend. A backend without one of its functions does not compile.

use std::ffi::{c_int, c_void};

/// The alignment of every block from malloc, on every supported platform.
pub const MIN_ALIGN: usize = 16;

pub type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
pub type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
pub type Free = unsafe extern "C" fn(*mut c_void);

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
    const ENTRIES: Entries;

    unsafe fn malloc(size: usize) -> *mut c_void;
    unsafe fn calloc(count: usize, size: usize) -> *mut c_void;
    /// The pointer is not null and the size is not zero.
    unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void;
    unsafe fn free(ptr: *mut c_void);
    /// `align` is a power of two.
    unsafe fn memalign(align: usize, size: usize) -> *mut c_void;
    unsafe fn usable_size(ptr: *mut c_void) -> usize;
    /// Returns free memory to the system. Keeps `pad` bytes if the backend supports it.
    fn trim(pad: usize) -> c_int;
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
