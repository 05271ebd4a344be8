//! The glibc backend: `__libc_malloc` and its kin are linked directly, because `dlsym` may itself
//! allocate. What has no such twin is looked up once (`functions`).

use std::ffi::{c_int, c_void, CStr};
use std::time::{Duration, Instant};

use crate::choice::contract::{Backend, Entries, Usage, MIN_ALIGN};
use crate::choice::mallinfo::{Mallinfo, Mallinfo2};
use flarena_sys::loader::objects;
use flarena_sys::racy_once::Found;
use flarena_sys::sync::lock::Lock;

extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(ptr: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(ptr: *mut c_void);
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

pub struct Glibc;

impl Backend for Glibc {
    const ENTRIES: Entries = Entries {
        malloc: __libc_malloc,
        calloc: __libc_calloc,
        realloc: __libc_realloc,
        free: __libc_free,
    };

    #[inline(always)]
    unsafe fn malloc(size: usize) -> *mut c_void {
        // SAFETY: glibc takes any size.
        unsafe { __libc_malloc(size) }
    }

    #[inline(always)]
    unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: glibc takes any sizes and checks their product.
        unsafe { __libc_calloc(count, size) }
    }

    #[inline(always)]
    unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the block is glibc's and live by the trait's contract.
        unsafe { __libc_realloc(ptr, size) }
    }

    #[inline(always)]
    unsafe fn free(ptr: *mut c_void) {
        // SAFETY: the block is glibc's and live by the trait's contract.
        unsafe { __libc_free(ptr) }
    }

    unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
        // SAFETY: the caller made sure that `align` is a power of two.
        unsafe { __libc_memalign(align.max(MIN_ALIGN), size) }
    }

    unsafe fn usable_size(ptr: *mut c_void) -> usize {
        // SAFETY: the block is glibc's and live by the trait's contract; malloc.h gives the
        // symbol this type.
        functions()
            .malloc_usable_size
            .map_or(0, |f| unsafe { f(ptr) })
    }

    fn trim(pad: usize) -> c_int {
        // SAFETY: malloc_trim takes any pad.
        functions().malloc_trim.map_or(0, |f| unsafe { f(pad) })
    }

    fn usage() -> Option<Usage> {
        let info = recent_mallinfo2()?;
        Some(Usage {
            live_bytes: (info.uordblks + info.hblkhd) as u64,
            free_bytes: info.fordblks as u64,
        })
    }
}

/// Functions of glibc that have no `__libc_` twin. `None` where this glibc has none.
#[derive(Default)]
pub struct Functions {
    pub malloc_usable_size: Option<unsafe extern "C" fn(*mut c_void) -> usize>,
    pub malloc_trim: Option<unsafe extern "C" fn(usize) -> c_int>,
    pub mallopt: Option<unsafe extern "C" fn(c_int, c_int) -> c_int>,
    pub mallinfo: Option<unsafe extern "C" fn() -> Mallinfo>,
    pub mallinfo2: Option<unsafe extern "C" fn() -> Mallinfo2>,
    pub malloc_stats: Option<unsafe extern "C" fn()>,
    pub malloc_info: Option<unsafe extern "C" fn(c_int, *mut libc::FILE) -> c_int>,
}

/// Looked up in libc.so.6 itself: the next library in the chain may be another allocator.
pub fn functions() -> &'static Functions {
    static FUNCTIONS: Found<Functions> = Found::new();
    FUNCTIONS.get_or_find(|| {
        // SAFETY: each name is given the type that malloc.h declares for it.
        unsafe {
            Functions {
                malloc_usable_size: own(c"malloc_usable_size"),
                malloc_trim: own(c"malloc_trim"),
                mallopt: own(c"mallopt"),
                mallinfo: own(c"mallinfo"),
                mallinfo2: own(c"mallinfo2"),
                malloc_stats: own(c"malloc_stats"),
                malloc_info: own(c"malloc_info"),
            }
        }
    })
}

/// # Safety
/// `F` must be the type of a function pointer that fits the symbol.
unsafe fn own<F>(name: &CStr) -> Option<F> {
    // SAFETY: F fits by this function's contract.
    unsafe { objects::cast(objects::in_libc(name)) }
}

/// When glibc was asked last, how long that took, and what it said.
static LAST: Lock<Option<(Instant, Duration, Mallinfo2)>> = Lock::new(None);

/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    // SAFETY: only fork's child handler comes here, in the child's only thread: nobody else uses LAST.
    if let Some(mut last) = unsafe { LAST.seize_orphaned() } {
        *last = None;
    }
}

/// glibc's numbers, as new as they can be had cheaply. The call walks the free chunks of every
/// arena with the arena locked, so where that takes long it is made seldom: at most a hundredth of
/// the time goes into it. `None` while another thread asks, and where glibc has no such numbers.
pub fn recent_mallinfo2() -> Option<Mallinfo2> {
    /// A walk this short may be repeated at every call.
    const CHEAP: Duration = Duration::from_micros(500);
    let mut last = LAST.try_lock()?;
    let asked = Instant::now();
    if let Some((at, cost, info)) = *last {
        if cost > CHEAP && asked.duration_since(at) < cost * 100 {
            return Some(info);
        }
    }
    let info = mallinfo2()?;
    *last = Some((asked, asked.elapsed(), info));
    Some(info)
}

/// glibc's own numbers. It locks every arena and walks its free chunks.
pub fn mallinfo2() -> Option<Mallinfo2> {
    let glibc = functions();
    if let Some(f) = glibc.mallinfo2 {
        // SAFETY: the symbol has this signature and no precondition.
        return Some(unsafe { f() });
    }
    // SAFETY: malloc.h gives the symbol this type; it has no precondition.
    glibc.mallinfo.map(|f| Mallinfo2::from(unsafe { f() }))
}
