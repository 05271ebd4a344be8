//! The jemalloc backend: the embedded, prefixed jemalloc 5.3.1 (`_rjem_`). `options` builds its options, `ctl` has
//! its typed controls and statistics.

mod commit_check;
pub mod ctl;
mod effective;
pub mod fork;
#[cfg(not(test))]
mod libc_calls;
mod options;
#[cfg(not(test))]
mod tls;

#[cfg(not(test))]
pub use libc_calls::bind_to_libc;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tikv_jemalloc_sys as je;

use crate::backends::contract::{Backend, Entries, Usage};
use crate::backends::refusals;
pub use effective::effective;
use flarena_sys::limits;
use flarena_sys::sync::lock::Lock;
pub use options::{configure, expect_limit, faults, has_users_decay, wants_background_threads};

pub struct Jemalloc;

/// In glibc mode jemalloc's constructor still runs. With this flag it fails at once and allocates nothing.
static INIT_DISABLED: AtomicBool = AtomicBool::new(false);

/// Prevents the initialisation of jemalloc. Called before its constructor, and only if no jemalloc function can be
/// called later, because such a call would wait for the initialisation for ever.
pub fn disable_init() {
    INIT_DISABLED.store(true, Relaxed);
}

/// Initialises jemalloc, which would otherwise do it in the program's first call. The caller has `configure`d it and
/// serves calls that come from here by another allocator: a function of libc that another library replaces may allocate.
pub fn initialise() {
    // SAFETY: jemalloc takes any size, and its own block or NULL.
    unsafe { je::free(je::malloc(1)) };
}

impl Backend for Jemalloc {
    fn entries() -> Entries {
        Entries {
            malloc: je::malloc,
            calloc: je::calloc,
            realloc: je::realloc,
            free: je::free,
        }
    }

    #[inline(always)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        // SAFETY: jemalloc accepts any size.
        after_purge(size, || unsafe { je::malloc(size) })
    }

    #[inline(always)]
    unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: jemalloc accepts any sizes and checks their product.
        after_purge(count.saturating_mul(size), || unsafe {
            je::calloc(count, size)
        })
    }

    #[inline(always)]
    unsafe extern "C" fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: by the trait's contract the block is live in jemalloc and neither argument is zero.
        after_purge(size, || unsafe { je::realloc(ptr, size) })
    }

    #[inline(always)]
    unsafe extern "C" fn free(ptr: *mut c_void) {
        // SAFETY: the block is live in jemalloc by the trait's contract.
        unsafe { je::free(ptr) }
    }

    unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
        // SAFETY: the alignment is a power of two. C requires a unique pointer for a size of zero.
        after_purge(size.max(align), || unsafe {
            je::aligned_alloc(align, size.max(1))
        })
    }

    unsafe fn usable_size(ptr: *mut c_void) -> usize {
        // SAFETY: the block is live in jemalloc by the trait's contract.
        unsafe { je::malloc_usable_size(ptr) }
    }

    fn trim(_pad: usize) -> c_int {
        let before = resident_bytes();
        purge_all();
        c_int::from(resident_bytes() < before)
    }

    fn keep_memory() {
        ctl::stop_decay();
    }

    fn usage() -> Option<Usage> {
        ctl::EPOCH.write(1);
        let live_bytes = ctl::ALLOCATED.read()? as u64;
        let resident = ctl::RESIDENT.read()? as u64;
        // The kernel may reclaim muzzy pages, but they are resident until then.
        let muzzy = ctl::ALL_MUZZY_PAGES.read().unwrap_or(0) as u64;
        // jemalloc's pages may be larger than the system's.
        let muzzy_bytes = muzzy * ctl::PAGE.read()? as u64;
        Some(Usage {
            live_bytes,
            free_bytes: (resident + muzzy_bytes).saturating_sub(live_bytes),
        })
    }
}

/// Runs `allocate`. Under a limit a second try follows, with the pages that jemalloc kept; `libc_calls` has released
/// the recycler's.
#[inline(always)]
fn after_purge(size: usize, allocate: impl Fn() -> *mut c_void) -> *mut c_void {
    let purge = || limits::is_any_set().then(purge_all).is_some();
    refusals::try_again(|| commit_check::alloc_if_backed(size, &allocate), purge)
}

/// Creates an arena that no thread uses, for the next new thread. A thread that must create its own crashes when
/// memory has run out; the calling thread has one, so here the creation only fails.
pub fn make_spare_arena() -> bool {
    if ctl::PERCPU_ARENA.read() != Some("disabled") {
        // With percpu_arena the first block of each CPU creates its arena.
        return !limits::is_address_space_limited();
    }
    let (Some(mine), Some(arenas)) = (ctl::THREAD_ARENA.read(), ctl::NARENAS.read()) else {
        return false;
    };
    let spare = if mine + 1 < arenas { arenas - 1 } else { 0 };
    spare == mine || (ctl::THREAD_ARENA.write(spare) && ctl::THREAD_ARENA.write(mine))
}

/// Resident bytes of jemalloc's mappings, including muzzy pages.
fn resident_bytes() -> u64 {
    Jemalloc::usage().map_or(0, |usage| usage.live_bytes + usage.free_bytes)
}

/// jemalloc skips an arena that another thread purges, also pages that became free since that purge began. So the next thread
/// waits, but not for ever: a signal handler may jump out of a purge, or trim in it.
static PURGING: Lock<()> = Lock::new(());
const PURGE_MS: u32 = 1000;

/// Purges every dirty and muzzy page of all arenas and the calling thread's cache: 100 to 350 ms per GB.
pub fn purge_all() {
    ctl::FLUSH_THREAD_CACHE.run();
    let _guard = PURGING.lock_within(PURGE_MS);
    ctl::PURGE_ALL.run();
}
