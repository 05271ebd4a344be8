//! The jemalloc backend: the embedded, prefixed jemalloc 5.3.1 (`_rjem_`).
//! Its options are made in `options`, its controls and statistics have their types in `ctl`.

pub mod ctl;
mod effective;
pub mod fork;
#[cfg(not(test))]
mod libc_calls;
mod options;
mod promise;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tikv_jemalloc_sys as je;

use crate::choice::contract::{Backend, Entries, Usage};
pub use effective::effective;
pub use options::{configure, faults, has_users_decay, wants_background_threads};

pub struct Jemalloc;

/// Where glibc serves and nobody finds jemalloc's functions: its constructor, which runs all the same, then asks for nothing.
static ASLEEP: AtomicBool = AtomicBool::new(false);

/// Called before jemalloc's constructor, and never where it may be called later: whoever did would wait for it to wake.
pub fn stay_asleep() {
    ASLEEP.store(true, Relaxed);
}

impl Backend for Jemalloc {
    const ENTRIES: Entries = Entries {
        malloc: je::malloc,
        calloc: je::calloc,
        realloc: je::realloc,
        free: je::free,
    };

    #[inline(always)]
    unsafe fn malloc(size: usize) -> *mut c_void {
        // SAFETY: jemalloc takes any size.
        promise::kept(size, || unsafe { je::malloc(size) })
    }

    #[inline(always)]
    unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: jemalloc takes any sizes and checks their product.
        promise::kept(count.saturating_mul(size), || unsafe {
            je::calloc(count, size)
        })
    }

    #[inline(always)]
    unsafe fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the block is jemalloc's and live by the trait's contract, and neither
        // argument is zero.
        promise::kept(size, || unsafe { je::realloc(ptr, size) })
    }

    #[inline(always)]
    unsafe fn free(ptr: *mut c_void) {
        // SAFETY: the block is jemalloc's and live by the trait's contract.
        unsafe { je::free(ptr) }
    }

    unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
        // SAFETY: the alignment is a power of two; C wants a unique pointer for a size of zero.
        promise::kept(size.max(align), || unsafe {
            je::aligned_alloc(align, size.max(1))
        })
    }

    unsafe fn usable_size(ptr: *mut c_void) -> usize {
        // SAFETY: the block is jemalloc's and live by the trait's contract.
        unsafe { je::malloc_usable_size(ptr) }
    }

    fn trim(_pad: usize) -> c_int {
        let before = resident_bytes();
        flush_thread_cache();
        purge_all();
        c_int::from(resident_bytes() < before)
    }

    fn usage() -> Option<Usage> {
        refresh_statistics();
        let live_bytes = ctl::ALLOCATED.read()? as u64;
        let resident = ctl::RESIDENT.read()? as u64;
        // Muzzy pages were offered to the kernel but are resident until it takes them.
        let muzzy = ctl::ALL_MUZZY_PAGES.read().unwrap_or(0) as u64;
        // Its own pages, which may be larger than the system's.
        let muzzy_bytes = muzzy * ctl::PAGE.read()? as u64;
        Some(Usage {
            live_bytes,
            free_bytes: (resident + muzzy_bytes).saturating_sub(live_bytes),
        })
    }
}

/// Makes an arena that no thread uses, for the next new thread to take. A thread that must make its
/// own crashes where memory has run out; here, in a thread that has one, it only fails.
pub fn make_spare_arena() -> bool {
    if ctl::PERCPU_ARENA.read() != Some("disabled") {
        // They are made with the first block of each CPU, and nobody may choose.
        return !options::is_address_space_limited();
    }
    let (Some(mine), Some(arenas)) = (ctl::THREAD_ARENA.read(), ctl::NARENAS.read()) else {
        return false;
    };
    let spare = if mine + 1 < arenas { arenas - 1 } else { 0 };
    spare == mine || (ctl::THREAD_ARENA.write(spare) && ctl::THREAD_ARENA.write(mine))
}

/// Starts what `background_thread:true` asks for. Not from a constructor or a small allocation:
/// it creates a thread.
pub fn start_background_threads() -> bool {
    ctl::BACKGROUND_THREAD.write(true)
}

/// Bytes of physically resident pages that jemalloc has mapped, muzzy ones included.
fn resident_bytes() -> u64 {
    Jemalloc::usage().map_or(0, |usage| usage.live_bytes + usage.free_bytes)
}

/// Empties the calling thread's cache into its arena.
pub fn flush_thread_cache() {
    ctl::FLUSH_THREAD_CACHE.run();
}

/// Returns every unused dirty and muzzy page of all arenas: 100-350 ms for each GB.
pub fn purge_all() {
    ctl::PURGE_ALL.run();
}

/// Returns the pages whose decay time has passed. An idle jemalloc never does so by itself.
pub fn decay_all() {
    ctl::DECAY_ALL.run();
}

/// jemalloc's statistics are a snapshot: this takes a new one.
pub fn refresh_statistics() {
    ctl::EPOCH.write(1);
}
