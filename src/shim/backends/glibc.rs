//! The glibc backend. Its functions are read from the symbol table of libc.so.6: `dlsym` may allocate, and it and the loader
//! find the functions of another library that defines them, too. Such a library may end in this one.
//!
//! In a program with another libc (musl) this backend passes each call on to that libc.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use crate::backends::contract::{
    Backend, Calloc, Entries, Free, Malloc, Realloc, Target, Usage, MIN_ALIGN,
};
use crate::backends::mallinfo::{Mallinfo, Mallinfo2};
use crate::backends::refusals;
use flarena_recycler as recycler;
use flarena_sys::loader::{self, objects};
use flarena_sys::sync::lock::Lock;
use flarena_sys::sync::racy_once::RacyOnceCell;

static MALLOC: Target<Malloc> = Target::unset();
static CALLOC: Target<Calloc> = Target::unset();
static REALLOC: Target<Realloc> = Target::unset();
static FREE: Target<Free> = Target::unset();
static MEMALIGN: Target<Memalign> = Target::unset();

type Memalign = unsafe extern "C" fn(usize, usize) -> *mut c_void;

/// Finds the functions. Called once, by the thread that chooses the backend.
pub fn configure() {
    let own = objects::all_in_libc([
        c"__libc_malloc",
        c"__libc_calloc",
        c"__libc_realloc",
        c"__libc_free",
        c"__libc_memalign",
    ]);
    let [malloc, calloc, realloc, free, memalign] = if own.contains(&ptr::null()) {
        // musl's memalign calls aligned_alloc by name, which reaches this library.
        [c"malloc", c"calloc", c"realloc", c"free", c"aligned_alloc"].map(objects::in_other_libc)
    } else {
        own
    };
    // SAFETY: each type is the one that C or malloc.h declares for the name.
    unsafe {
        MALLOC.set_address(malloc);
        CALLOC.set_address(calloc);
        REALLOC.set_address(realloc);
        FREE.set_address(free);
        MEMALIGN.set_address(memalign);
    }
}

/// The values in glibc's malloc.h.
const M_TRIM_THRESHOLD: c_int = -1;
const M_MMAP_MAX: c_int = -4;

pub struct Glibc;

impl Backend for Glibc {
    fn entries() -> Entries {
        Entries {
            malloc: MALLOC.get(),
            calloc: CALLOC.get(),
            realloc: REALLOC.get(),
            free: FREE.get(),
        }
    }

    #[inline(always)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        // SAFETY: glibc accepts any size.
        after_release(|| unsafe { MALLOC.get()(size) })
    }

    #[inline(always)]
    unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: glibc accepts any sizes and checks their product.
        after_release(|| unsafe { CALLOC.get()(count, size) })
    }

    #[inline(always)]
    unsafe extern "C" fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the block is live in glibc by the trait's contract.
        after_release(|| unsafe { REALLOC.get()(ptr, size) })
    }

    #[inline(always)]
    unsafe extern "C" fn free(ptr: *mut c_void) {
        // SAFETY: the block is live in glibc by the trait's contract.
        unsafe { FREE.get()(ptr) }
    }

    unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
        // SAFETY: `align` is a power of two by the trait's contract.
        after_release(|| unsafe { MEMALIGN.get()(align.max(MIN_ALIGN), size) })
    }

    unsafe fn usable_size(ptr: *mut c_void) -> usize {
        // SAFETY: the block is live in glibc by the trait's contract, and malloc.h declares this type.
        functions()
            .malloc_usable_size
            .map_or(0, |f| unsafe { f(ptr) })
    }

    fn trim(pad: usize) -> c_int {
        // SAFETY: malloc_trim accepts any pad.
        functions().malloc_trim.map_or(0, |f| unsafe { f(pad) })
    }

    fn keep_memory() {
        // A block with a mapping of its own would return to the system when it is freed.
        const NEVER: [(c_int, c_int); 2] = [(M_TRIM_THRESHOLD, -1), (M_MMAP_MAX, 0)];
        for (parameter, value) in NEVER {
            // SAFETY: mallopt accepts any numbers.
            functions().mallopt.map(|f| unsafe { f(parameter, value) });
        }
    }

    fn usage() -> Option<Usage> {
        let info = recent_mallinfo2()?;
        Some(Usage {
            live_bytes: (info.uordblks + info.hblkhd) as u64,
            free_bytes: info.fordblks as u64,
        })
    }
}

/// A second try with the memory that the recycler kept.
#[inline(always)]
fn after_release(allocate: impl Fn() -> *mut c_void) -> *mut c_void {
    refusals::try_again(allocate, recycler::release_addresses)
}

/// The targets of the fast path where the system may refuse memory: they try a second time.
pub fn entries_with_retry() -> Entries {
    Entries {
        malloc: Glibc::malloc,
        calloc: Glibc::calloc,
        realloc: Glibc::realloc,
        free: FREE.get(),
    }
}

macro_rules! functions {
    ($($name:ident: $type:ty = $symbol:literal;)*) => {
        /// Functions of glibc without a `__libc_` name. `None` if this version of glibc lacks the function.
        #[derive(Default)]
        pub struct Functions {
            $(pub $name: Option<$type>,)*
        }

        fn find_functions() -> Functions {
            let names = [$($symbol),*];
            let [$($name),*] = if loader::glibc::is_here() {
                objects::all_in_libc(names)
            } else {
                names.map(objects::in_other_libc)
            };
            // SAFETY: each type is the one that malloc.h declares for the name.
            unsafe { Functions { $($name: objects::cast($name),)* } }
        }
    };
}

functions! {
    malloc_usable_size: unsafe extern "C" fn(*mut c_void) -> usize = c"malloc_usable_size";
    malloc_trim: unsafe extern "C" fn(usize) -> c_int = c"malloc_trim";
    mallopt: unsafe extern "C" fn(c_int, c_int) -> c_int = c"mallopt";
    mallinfo: unsafe extern "C" fn() -> Mallinfo = c"mallinfo";
    mallinfo2: unsafe extern "C" fn() -> Mallinfo2 = c"mallinfo2";
    malloc_stats: unsafe extern "C" fn() = c"malloc_stats";
    malloc_info: unsafe extern "C" fn(c_int, *mut libc::FILE) -> c_int = c"malloc_info";
}

/// The constructor is the first caller: later lookups in glibc find this library's `malloc_usable_size`.
pub fn functions() -> &'static Functions {
    static FUNCTIONS: RacyOnceCell<Functions> = RacyOnceCell::new();
    FUNCTIONS.get_or_init(find_functions)
}

/// The time of the last call of mallinfo2, its duration, and its result.
static LAST: Lock<Option<(Instant, Duration, Mallinfo2)>> = Lock::new(None);

/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    // SAFETY: the child of a fork has no other thread yet, so LAST has no other user.
    unsafe { LAST.reset_after_fork() };
}

/// glibc's figures, possibly cached. The call walks the free chunks of every arena with the arena locked. A slow
/// call is repeated rarely, so that it takes at most 1 % of the time. `None` while another thread makes the call,
/// or if glibc lacks the function.
pub fn recent_mallinfo2() -> Option<Mallinfo2> {
    /// A call that is this short is never cached.
    const CHEAP: Duration = Duration::from_micros(500);
    let mut last = LAST.try_lock()?;
    let asked = Instant::now();
    if let Some((at, cost, info)) = *last
        && cost > CHEAP
        && asked.duration_since(at) < cost * 100
    {
        return Some(info);
    }
    let info = mallinfo2()?;
    *last = Some((asked, asked.elapsed(), info));
    Some(info)
}

/// glibc's own figures. The call locks every arena and walks its free chunks.
pub fn mallinfo2() -> Option<Mallinfo2> {
    let glibc = functions();
    if let Some(f) = glibc.mallinfo2 {
        // SAFETY: the symbol has this signature and no precondition.
        return Some(unsafe { f() });
    }
    // SAFETY: malloc.h declares this type, and the function has no precondition.
    glibc.mallinfo.map(|f| Mallinfo2::from(unsafe { f() }))
}
