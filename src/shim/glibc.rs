//! The glibc backend: `__libc_malloc` and its kin are linked directly, because `dlsym` may itself
//! allocate. What has no such twin is looked up on first use (`symbols`).

use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::backend::{Backend, Usage};
use crate::constants::MIN_ALIGN;
use crate::hot::Entries;
use crate::symbols;

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
        // SAFETY: the caller vouches for the pointer.
        unsafe { __libc_realloc(ptr, size) }
    }

    #[inline(always)]
    unsafe fn free(ptr: *mut c_void) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { __libc_free(ptr) }
    }

    unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
        // SAFETY: the caller made sure that `align` is a power of two.
        unsafe { __libc_memalign(align.max(MIN_ALIGN), size) }
    }

    unsafe fn usable_size(ptr: *mut c_void) -> usize {
        // SAFETY: the caller vouches for the pointer; the symbol has this signature.
        symbols::glibc()
            .malloc_usable_size
            .map_or(0, |f| unsafe { f(ptr) })
    }

    fn trim(pad: usize) -> c_int {
        // SAFETY: malloc_trim takes any pad.
        symbols::glibc()
            .malloc_trim
            .map_or(0, |f| unsafe { f(pad) })
    }

    fn usage() -> Option<Usage> {
        let info = recent_mallinfo2()?;
        Some(Usage {
            live_bytes: (info.uordblks + info.hblkhd) as u64,
            free_bytes: info.fordblks as u64,
        })
    }
}

/// `struct mallinfo2` of malloc.h. Before glibc 2.33 the numbers are 32 bits wide and wrap.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Mallinfo2 {
    pub arena: usize,
    pub ordblks: usize,
    pub smblks: usize,
    pub hblks: usize,
    pub hblkhd: usize,
    pub usmblks: usize,
    pub fsmblks: usize,
    pub uordblks: usize,
    pub fordblks: usize,
    pub keepcost: usize,
}

/// `struct mallinfo` of malloc.h: the same, as it was first designed.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Mallinfo {
    pub arena: c_int,
    pub ordblks: c_int,
    pub smblks: c_int,
    pub hblks: c_int,
    pub hblkhd: c_int,
    pub usmblks: c_int,
    pub fsmblks: c_int,
    pub uordblks: c_int,
    pub fordblks: c_int,
    pub keepcost: c_int,
}

impl From<Mallinfo> for Mallinfo2 {
    fn from(old: Mallinfo) -> Mallinfo2 {
        let wide = |n: c_int| n as u32 as usize;
        Mallinfo2 {
            arena: wide(old.arena),
            ordblks: wide(old.ordblks),
            smblks: wide(old.smblks),
            hblks: wide(old.hblks),
            hblkhd: wide(old.hblkhd),
            usmblks: wide(old.usmblks),
            fsmblks: wide(old.fsmblks),
            uordblks: wide(old.uordblks),
            fordblks: wide(old.fordblks),
            keepcost: wide(old.keepcost),
        }
    }
}

impl From<Mallinfo2> for Mallinfo {
    fn from(new: Mallinfo2) -> Mallinfo {
        // The interface is 32 bits wide: saturate rather than wrap into nonsense.
        let narrow = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
        Mallinfo {
            arena: narrow(new.arena),
            ordblks: narrow(new.ordblks),
            smblks: narrow(new.smblks),
            hblks: narrow(new.hblks),
            hblkhd: narrow(new.hblkhd),
            usmblks: narrow(new.usmblks),
            fsmblks: narrow(new.fsmblks),
            uordblks: narrow(new.uordblks),
            fordblks: narrow(new.fordblks),
            keepcost: narrow(new.keepcost),
        }
    }
}

/// glibc's numbers, as new as they can be had cheaply. The call walks the free chunks of every
/// arena with the arena locked, so where that takes long it is made seldom: at most a hundredth of
/// the time goes into it. `None` while another thread asks for the first time.
pub fn recent_mallinfo2() -> Option<Mallinfo2> {
    /// A walk this short may be repeated at every call.
    const CHEAP: Duration = Duration::from_micros(500);
    static LAST: Mutex<Option<(Instant, Duration, Mallinfo2)>> = Mutex::new(None);
    // Never waiting: the child of a fork may find the lock taken for ever.
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
    let glibc = symbols::glibc();
    if let Some(f) = glibc.mallinfo2 {
        // SAFETY: the symbol has this signature and no precondition.
        return Some(unsafe { f() });
    }
    // SAFETY: as above.
    glibc.mallinfo.map(|f| Mallinfo2::from(unsafe { f() }))
}
