//! The functions that the rest of the library calls, over the one recycler of the process.
//!
//! Sizes are in bytes. All functions keep errno, because each system call below them does.
//! `configure` enables the recycler; before it, only `alloc_early` allocates. Only this file changes
//! the statics below.

use crate::core::geometry::Bytes;
pub use crate::core::geometry::Contents;
use crate::core::pagemap::Pagemap;
use crate::core::unit::{Extent, UNIT_BYTES};
use crate::ops::free::FreeOutcome;
pub use crate::ops::realloc::Realloc;
use crate::os::linux::LinuxVm;
use crate::os::vm::Vm;
pub use crate::state::recycler::{Governor, LiveBlock};
use crate::state::recycler::{Locked, Recycler};
pub use crate::state::stats::{Stats, FALLBACK_NAMES};
use flarena_shared::settings::Settings;
use flarena_sys::abort;
use flarena_sys::proc::procfs;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::Duration;

/// Every block starts at a multiple of this.
pub const ALIGN_MAX: usize = UNIT_BYTES;

static PAGEMAP: Pagemap = Pagemap::new();
static RECYCLER: Recycler<LinuxVm> = Recycler::new(LinuxVm::new(), &PAGEMAP);
static ENABLED: AtomicBool = AtomicBool::new(false);
static FROZEN: AtomicBool = AtomicBool::new(false);
static MIN_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
static DECAY_MS: AtomicU32 = AtomicU32::new(Settings::DEFAULT.decay_ms);

// Configuration.

/// Called once, when the allocator is chosen, before all other functions except `alloc_early` and
/// `free`. Does not allocate.
pub fn configure(settings: &Settings) {
    let memory_limit = settings.memory_limit_bytes.map(Bytes::new);
    RECYCLER.vm.huge_pages.choose(settings.huge);
    set_page_size();
    RECYCLER.state.lock().space.tolerance.memory_limit = memory_limit;
    DECAY_MS.store(settings.decay_ms, Relaxed);
    // Each block takes whole units of addresses, so a minimum of half a unit or more wastes few addresses.
    let min_bytes = usize::try_from(settings.recycle_min_bytes).unwrap_or(usize::MAX);
    MIN_BYTES.store(min_bytes.max(1), Relaxed);
    // A thread that sees it enabled also sees the configuration.
    ENABLED.store(settings.recycle, Release);
}

/// Leaves all later large requests to the backend. For a process whose malloc is not flarena's, whose
/// recycler is unusable after a fork, or that wants what only the backend does.
pub fn disable() {
    ENABLED.store(false, Relaxed);
}

/// From now on malloc's family makes no system call here: large requests are left to the backend, and freed blocks
/// keep their pages. For a process that enters seccomp's strict mode.
pub fn freeze() {
    disable();
    FROZEN.store(true, Relaxed);
}

fn set_page_size() {
    let page_bytes = procfs::page_bytes().clamp(4096, UNIT_BYTES / 8);
    RECYCLER.vm.set_page_bytes(page_bytes);
    RECYCLER.set_page_shift(page_bytes.ilog2());
}

// The functions of malloc's family.

/// A block of any size, for calls that come before a backend is chosen. `free` accepts it.
pub fn alloc_early(size: usize, contents: Contents) -> *mut u8 {
    set_page_size();
    alloc(size.max(1), contents)
}

/// True if the recycler serves requests of this size and alignment. False before `configure`.
#[inline]
pub fn accepts(size: usize, align: usize) -> bool {
    align <= ALIGN_MAX
        && is_large(size)
        && size <= RECYCLER.geometry().max_bytes()
        && ENABLED.load(Acquire)
}

/// True for the size of a large block, also if the recycler is disabled.
#[inline]
pub fn is_large(size: usize) -> bool {
    size >= MIN_BYTES.load(Relaxed)
}

/// A block for a request that `accepts` granted. Null means: the backend must serve the request.
pub fn alloc(size: usize, contents: Contents) -> *mut u8 {
    RECYCLER
        .alloc_block(size, contents)
        .map_or(ptr::null_mut(), |start| start as *mut u8)
}

/// True for a multiple of 2 MiB, at which every block starts.
#[inline(always)]
pub fn may_be_block(pointer: *const u8) -> bool {
    pointer as usize & (UNIT_BYTES - 1) == 0
}

/// None if the pointer is not a block of the recycler.
pub fn usable_size(pointer: *const u8) -> Option<usize> {
    RECYCLER.size_at(pointer as usize)
}

/// False if the pointer is not a block of the recycler. Ends the process for a double free, and for
/// any other address inside the recycler's memory.
#[inline]
pub fn free(pointer: *mut u8) -> bool {
    let start = pointer as usize;
    if let Some(extent) = RECYCLER.find(start) {
        free_block(extent);
        return true;
    }
    if RECYCLER.holds(start) {
        abort::abort_with("free(): double free of, or invalid pointer", start);
    }
    false
}

/// Not inlined: a free that only samples the program's small blocks would save its many registers.
#[inline(never)]
fn free_block(extent: Extent) {
    if FROZEN.load(Relaxed) {
        return;
    }
    match RECYCLER.free_block(extent) {
        FreeOutcome::Done => {}
        FreeOutcome::DoubleFree => abort::abort_with("free(): double free of", extent.start()),
    }
}

/// Ends the process for an address inside the recycler's memory that is not a live block.
pub fn realloc(pointer: *mut u8, new_size: usize) -> Realloc {
    let Some(extent) = RECYCLER.find(pointer as usize) else {
        if RECYCLER.holds(pointer as usize) {
            abort::abort_with("realloc(): freed or invalid pointer", pointer as usize);
        }
        return Realloc::NotOurs;
    };
    if FROZEN.load(Relaxed) || new_size < MIN_BYTES.load(Relaxed) {
        return Realloc::MoveToBackend;
    }
    if new_size > RECYCLER.geometry().max_bytes() {
        return Realloc::Failed;
    }
    RECYCLER.resize(extent, new_size)
}

// Allocation sites and statistics.

/// Records the allocation site of a block that `alloc` or `realloc` has just returned.
#[inline]
pub fn set_origin(pointer: *const u8, origin: u64) {
    RECYCLER.set_origin(pointer as usize, origin);
}

/// All live blocks. Blocks that other threads allocate during the call may be missing.
pub fn live_blocks() -> Vec<LiveBlock> {
    let count = usize::try_from(RECYCLER.stats().live_blocks).unwrap_or(0);
    let mut blocks = Vec::with_capacity(count + 64);
    RECYCLER.list_blocks(&mut blocks);
    blocks
}

/// The exact sum of the live blocks' pages.
pub fn live_bytes() -> u64 {
    RECYCLER.live_bytes().count()
}

/// The same for the child of a fork: `None` if the recycler's lock is held.
pub fn live_bytes_unless_locked() -> Option<u64> {
    Some(RECYCLER.live_bytes_unless_locked()?.count())
}

pub fn stats() -> Stats {
    with_settings(RECYCLER.stats())
}

/// The same for a caller that must not wait: `None` if the recycler's lock is held.
pub fn stats_unless_locked() -> Option<Stats> {
    RECYCLER.stats_unless_locked().map(with_settings)
}

fn with_settings(mut stats: Stats) -> Stats {
    stats.enabled = ENABLED.load(Relaxed);
    stats.decay_ms = DECAY_MS.load(Relaxed);
    stats.asks_for_huge_pages = RECYCLER.vm.huge_pages.are_requested();
    stats
}

// The governor.

/// Returns pages that were unused for the decay time to the system. The result is the time until
/// the next call, or `None` if nothing is left to return.
pub fn decay() -> Option<Duration> {
    let next_ms = RECYCLER.decay_round(DECAY_MS.load(Relaxed))?;
    Some(Duration::from_millis(next_ms.into()))
}

/// The same for a process without a governor: a call of the program runs the decay that is due.
pub fn decay_if_due() {
    if FROZEN.load(Relaxed) {
        return;
    }
    RECYCLER.decay_round_if_due(DECAY_MS.load(Relaxed));
}

/// Returns all cached pages and all slack to the system. The result is in bytes.
pub fn trim() -> u64 {
    RECYCLER.purge_all().count()
}

/// After the system refused memory: unmaps all that no block needs. False: there was nothing, so a
/// second try would fail, too.
#[cold]
pub fn release_addresses() -> bool {
    RECYCLER.release_addresses()
}

/// After a limit of the system was set: brings free extents within their share of the room. In a signal handler that
/// interrupted the holder of the lock, the interrupted operation or the next free does it.
pub fn keep_room() {
    if RECYCLER.vm.is_limited() && !lock_is_held_by_me() && RECYCLER.adopt_after_fork() {
        RECYCLER.keep_room();
    }
}

/// True once the recycler holds enough memory to need a governor.
#[inline]
pub fn wants_governor() -> bool {
    RECYCLER.wants_governor_thread.load(Relaxed)
}

/// Tells the recycler whether a governor calls `decay`. With one, more pages stay cached.
pub fn set_governor(governor: Governor) {
    RECYCLER.governor.store(governor, Relaxed);
}

/// Near a memory limit the tolerance above the peak is zero.
pub fn set_pressure(near_limit: bool) {
    if let Some(mut state) = adopted_state() {
        state.space.tolerance.near_limit = near_limit;
    }
}

/// The memory limit of the process, which bounds the tolerance above the peak.
pub fn set_memory_limit(bytes: Option<u64>) {
    if let Some(mut state) = adopted_state() {
        state.space.tolerance.memory_limit = bytes.map(Bytes::new);
    }
}

/// The state, adopted first in a forked child: a later adoption would reset the values set here. `None` in a signal
/// handler that interrupted the holder of the lock: without the value only the tolerance differs.
fn adopted_state() -> Option<Locked<'static>> {
    if lock_is_held_by_me() {
        return None;
    }
    RECYCLER.adopt_after_fork();
    Some(RECYCLER.lock())
}

// Fork and panic.

/// Called before a fork. Waits for the thread that holds the state's lock and keeps other threads
/// out, for a few milliseconds at most.
pub fn quiesce_for_fork() {
    RECYCLER.state.quiesce_for_fork();
}

/// Called in the parent after a fork.
pub fn resume_after_fork() {
    RECYCLER.state.resume_after_fork();
}

/// Prepares the recycler that a child inherited. Disables it if the state is unusable.
///
/// # Safety
/// Only in the child of a fork, before the child has other threads.
pub unsafe fn after_fork_in_child() {
    // SAFETY: the caller is the only thread of a forked child.
    if !unsafe { RECYCLER.mark_inherited() } {
        disable();
    }
}

/// True if the calling thread holds the state's lock.
pub fn lock_is_held_by_me() -> bool {
    RECYCLER.state.is_held_by_me()
}

/// Panics for tests/faults.
#[cfg(feature = "defect")]
pub fn panic_with_lock() -> ! {
    let _state = adopted_state();
    panic!("provoked under the lock");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the loader for the size of a page")]
    fn a_request_is_accepted_up_to_the_largest_that_the_recycler_serves() {
        let (enabled, min_bytes) = (
            ENABLED.swap(true, Relaxed),
            MIN_BYTES.swap(1 << 20, Relaxed),
        );
        set_page_size();
        let max_bytes = RECYCLER.geometry().max_bytes();
        assert!(!accepts((1 << 20) - 1, 1));
        assert!(accepts(1 << 20, ALIGN_MAX));
        assert!(!accepts(1 << 20, 2 * ALIGN_MAX));
        assert!(accepts(max_bytes, 1));
        assert!(RECYCLER.geometry().need(max_bytes).is_some());
        for refused in [max_bytes + 1, (1 << 46) + 1, usize::MAX] {
            assert!(!accepts(refused, 1), "{refused}");
        }
        ENABLED.store(enabled, Relaxed);
        MIN_BYTES.store(min_bytes, Relaxed);
    }

    #[test]
    fn only_a_multiple_of_a_unit_may_be_a_block() {
        for (address, expected) in [
            (1 << 21, true),
            (5 << 21, true),
            (5 << 16, false),
            (1, false),
        ] {
            assert_eq!(may_be_block(address as *const u8), expected, "{address:#x}");
        }
        assert!(!may_be_block((UNIT_BYTES - 1) as *const u8));
    }

    fn is_usable_until_freed(block: *mut u8, size: usize) -> bool {
        let is_usable = usable_size(block).is_some_and(|usable| usable >= size);
        is_usable && free(block) && usable_size(block).is_none()
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the real kernel")]
    fn a_block_of_any_size_can_be_allocated_before_the_configuration() {
        for size in [0, 1, 3 << 20] {
            let block = alloc_early(size, Contents::Zeroed);
            assert!(is_usable_until_freed(block, size.max(1)));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the real kernel")]
    fn a_block_is_usable_until_it_is_freed() {
        set_page_size();
        for contents in [Contents::Any, Contents::Zeroed] {
            assert!(is_usable_until_freed(alloc(3 << 20, contents), 3 << 20));
        }
    }
}
