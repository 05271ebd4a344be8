//! What a backend must do: a function that one of them lacks does not compile.

use std::ffi::{c_int, c_void};

/// malloc's promise of alignment on every platform that we run on.
pub const MIN_ALIGN: usize = 16;

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

/// Sizes and alignments were checked by `abi::heap`.
///
/// # Safety
/// As in C: pointers come from the same backend and are live.
pub trait Backend {
    /// What the hot path jumps to.
    const ENTRIES: Entries;

    unsafe fn malloc(size: usize) -> *mut c_void;
    unsafe fn calloc(count: usize, size: usize) -> *mut c_void;
    /// Neither a null pointer nor a size of zero.
    unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void;
    unsafe fn free(ptr: *mut c_void);
    /// `align` is a power of two.
    unsafe fn memalign(align: usize, size: usize) -> *mut c_void;
    unsafe fn usable_size(ptr: *mut c_void) -> usize;
    /// Gives free memory back, keeping `pad` bytes where the backend knows how to.
    fn trim(pad: usize) -> c_int;
    /// Handed out and free bytes; `None` where the backend cannot tell.
    fn usage() -> Option<Usage>;
}

/// What a backend holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Handed out to the program.
    pub live_bytes: u64,
    /// Free, but not given back to the system, as far as the backend knows.
    pub free_bytes: u64,
}
