//! The page recycler: large blocks whose freed pages serve any later large block.
//!
//! `unit`, `table`, `pool`, `budget`, `thrash`, `space` and `block` are book-keeping; `engine`, `address`, `gather`,
//! `resize`, `giveback` and `clean` decide and act through `map`; `kernel` is Linux. This file is the front door:
//! one recycler for the process, errno kept, bytes in and out. Only the functions here are called from
//! outside.

mod address;
mod amount;
mod block;
mod budget;
#[cfg(debug_assertions)]
mod check;
mod clean;
mod engine;
#[cfg(test)]
mod fake;
mod gather;
mod giveback;
mod kernel;
mod ledger;
mod map;
mod pool;
mod process;
mod queue;
mod resize;
mod space;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod thrash;
mod unit;
mod zero;

use crate::process::procfs;
use amount::Bytes;
use engine::Recycler;
use kernel::Kernel;
use resize::Resized;
pub use stats::{Stats, FALLBACK_NAMES};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use table::Table;
use unit::UNIT_BYTES;

/// Blocks have this alignment by nature.
pub const ALIGN_MAX: usize = UNIT_BYTES;

/// What the process chose; `min_bytes` at least a unit's half keeps the waste of addresses small.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub min_bytes: usize,
    pub decay_ms: u64,
    pub enabled: bool,
    pub memory_limit: Option<u64>,
}

/// How `realloc` of a pointer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realloc {
    NotOurs,
    Done(*mut u8),
    /// ENOMEM; the old block is intact.
    Failed,
    /// The new size is below the recycler's: the caller allocates, copies, and frees the old block.
    MoveToBackend,
}

static TABLE: Table = Table::new();
static RECYCLER: Recycler<Kernel> = Recycler::new(Kernel::new(), &TABLE);
static ENABLED: AtomicBool = AtomicBool::new(false);
static MIN_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
static DECAY_MS: AtomicU32 = AtomicU32::new(1000);

/// Called once, when the allocator is chosen, before any other function here. Does not allocate.
pub fn configure(config: Config) {
    let memory_limit = config.memory_limit.map(Bytes);
    RECYCLER.configure(know_pages().ilog2(), memory_limit);
    DECAY_MS.store(
        u32::try_from(config.decay_ms)
            .unwrap_or(u32::MAX)
            .min(1 << 30),
        Relaxed,
    );
    MIN_BYTES.store(config.min_bytes.max(1), Relaxed);
    ENABLED.store(config.enabled, Relaxed);
}

/// Tells the map the size of a page; answers it.
fn know_pages() -> usize {
    let page_bytes = procfs::page_bytes().clamp(4096, UNIT_BYTES / 8);
    RECYCLER.map.set_page_bytes(page_bytes);
    page_bytes
}

/// A block of any size, for calls that come before any backend can serve. `free` knows it.
pub fn alloc_early(size: usize, zeroed: bool) -> *mut u8 {
    RECYCLER.configure(know_pages().ilog2(), None);
    let start = RECYCLER.alloc(size.max(1), zeroed);
    start.map_or(std::ptr::null_mut(), |start| start as *mut u8)
}

/// For a process whose malloc is not ours: large blocks are the backend's from now on.
pub fn disable() {
    ENABLED.store(false, Relaxed);
}

/// Keeps errno for the caller: most paths here try system calls that may be refused.
struct Errno(i32);

impl Errno {
    #[inline]
    fn keep() -> Self {
        Errno(procfs::errno())
    }
}

impl Drop for Errno {
    #[inline]
    fn drop(&mut self) {
        procfs::set_errno(self.0);
    }
}

/// An uninitialised block, or null: then the backend is to serve the request. Alignments up to 2 MiB come
/// by nature; larger ones are refused.
pub fn alloc(size: usize, align: usize) -> *mut u8 {
    if align > UNIT_BYTES {
        return std::ptr::null_mut();
    }
    serve(size, false)
}

pub fn alloc_zeroed(size: usize) -> *mut u8 {
    serve(size, true)
}

fn serve(size: usize, zeroed: bool) -> *mut u8 {
    if !ENABLED.load(Relaxed) || size < MIN_BYTES.load(Relaxed) {
        return std::ptr::null_mut();
    }
    let _errno = Errno::keep();
    RECYCLER
        .alloc(size, zeroed)
        .map_or(std::ptr::null_mut(), |start| start as *mut u8)
}

/// The test that every free() pays.
#[inline(always)]
pub fn is_candidate(pointer: *const u8) -> bool {
    pointer as usize & (UNIT_BYTES - 1) == 0
}

/// None: not a block of the recycler.
pub fn usable_size(pointer: *const u8) -> Option<usize> {
    RECYCLER.usable_size(pointer as usize)
}

/// False: not a block of the recycler.
#[inline]
pub fn free(pointer: *mut u8) -> bool {
    if !is_candidate(pointer) {
        return false;
    }
    let _errno = Errno::keep();
    RECYCLER.free(pointer as usize)
}

pub fn realloc(pointer: *mut u8, new_size: usize) -> Realloc {
    let _errno = Errno::keep();
    if RECYCLER.find(pointer as usize).is_none() {
        return Realloc::NotOurs;
    }
    if new_size < MIN_BYTES.load(Relaxed) {
        return Realloc::MoveToBackend;
    }
    match RECYCLER.resize(pointer as usize, new_size) {
        Resized::NotOurs => Realloc::NotOurs,
        Resized::Done(start) => Realloc::Done(start as *mut u8),
        Resized::Failed => Realloc::Failed,
    }
}

/// Returns pages that were unused for the decay time; called by the governor. Answers when to call next;
/// None: nothing is held.
pub fn decay() -> Option<Duration> {
    let in_ms = RECYCLER.decay(DECAY_MS.load(Relaxed))?;
    Some(Duration::from_millis(in_ms.into()))
}

/// Returns everything cached and all slack. Answers bytes.
pub fn trim() -> u64 {
    let _errno = Errno::keep();
    RECYCLER.trim().0
}

/// Near a memory limit nothing is kept beyond the peak.
pub fn set_pressure(near_limit: bool) {
    RECYCLER.lock().space.tolerance.near_limit = near_limit;
}

/// The bytes that the process may use, once somebody has looked: keeps the tolerance away from them.
pub fn set_memory_limit(bytes: Option<u64>) {
    RECYCLER.lock().space.tolerance.memory_limit = bytes.map(Bytes);
}

/// The governor runs and will call `decay`: more may be kept between frees.
pub fn set_governed(governed: bool) {
    RECYCLER.lock().governed = governed;
}

/// The governor could not be started: until it is, little is kept, as nothing ages it.
pub fn set_ungovernable() {
    RECYCLER.lock().ungovernable = true;
}

/// True once the process holds enough in large blocks to be worth a governor.
#[inline]
pub fn wants_governor() -> bool {
    RECYCLER.heavy.load(Relaxed)
}

pub fn stats() -> Stats {
    let mut stats = RECYCLER.stats();
    stats.enabled = ENABLED.load(Relaxed);
    stats
}

/// Waits for system calls in flight and holds the lock across the fork.
pub fn fork_prepare() {
    RECYCLER.fork_prepare();
}

///
/// # Safety
/// Only after [`fork_prepare`], once.
pub unsafe fn fork_parent() {
    // SAFETY: the caller comes from fork_prepare.
    unsafe { RECYCLER.fork_parent() };
}

/// The child starts with an empty cache, at its first need.
///
/// # Safety
/// Only in a child whose parent came from [`fork_prepare`], once.
pub unsafe fn fork_child() {
    // SAFETY: the caller's parent comes from fork_prepare.
    unsafe { RECYCLER.fork_child() };
}
