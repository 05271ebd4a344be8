//! Counts the bytes in the arenas of pymalloc, Python's allocator for small objects, which maps
//! them itself. CPython lets a program replace the functions that do so
//! (`PyObject_SetArenaAllocator`). The functions here count, and call the original ones.
//!
//! `watch` stores the original functions before Python calls ours. They never change after that.

use std::ffi::{c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use flarena_sys::{loader::objects, loader::symbols};

type Alloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *mut c_void, usize);

/// `PyObjectArenaAllocator`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Allocator {
    context: *mut c_void,
    alloc: Option<Alloc>,
    free: Option<Free>,
}

static ORIGINAL: OnceLock<(Alloc, Free)> = OnceLock::new();
static HELD_BYTES: AtomicU64 = AtomicU64::new(0);

/// Called by the constructor, before Python has its first arena and while there is one thread.
pub fn watch() {
    type Exchange = unsafe extern "C" fn(*mut Allocator);
    fn function(name: &CStr) -> Option<Exchange> {
        // SAFETY: CPython's functions of these names have this type.
        unsafe { objects::cast(symbols::first_definition(name)) }
    }
    let get = function(c"PyObject_GetArenaAllocator");
    let set = function(c"PyObject_SetArenaAllocator");
    let Some((get, set)) = get.zip(set) else {
        return;
    };
    let mut original = Allocator {
        context: ptr::null_mut(),
        alloc: None,
        free: None,
    };
    // SAFETY: the structure has CPython's layout.
    unsafe { get(&raw mut original) };
    let Some(functions) = original.alloc.zip(original.free) else {
        return;
    };
    ORIGINAL.get_or_init(|| functions);
    let mut counting = Allocator {
        alloc: Some(count_alloc),
        free: Some(count_free),
        ..original
    };
    // SAFETY: Python has not started, so it has no arena of the original functions. This library is
    // never unloaded.
    unsafe { set(&raw mut counting) };
}

/// `None` without Python.
pub fn held_bytes() -> Option<u64> {
    ORIGINAL.get().map(|_| HELD_BYTES.load(Relaxed))
}

unsafe extern "C" fn count_alloc(context: *mut c_void, size: usize) -> *mut c_void {
    let Some((alloc, _)) = ORIGINAL.get() else {
        return ptr::null_mut();
    };
    // SAFETY: Python's own function, with Python's arguments.
    let arena = unsafe { alloc(context, size) };
    if !arena.is_null() {
        HELD_BYTES.fetch_add(size as u64, Relaxed);
    }
    arena
}

unsafe extern "C" fn count_free(context: *mut c_void, arena: *mut c_void, size: usize) {
    if let Some((_, free)) = ORIGINAL.get() {
        // SAFETY: Python's own function, with Python's arguments.
        unsafe { free(context, arena, size) };
        HELD_BYTES.fetch_sub(size as u64, Relaxed);
    }
}
