//! The page recycler: large blocks whose freed pages serve any later large block.
//!
//! # The idea
//!
//! A program that frees 100 blocks of 4 MiB and asks for one of 400 MiB has the pages, but not in one piece. A
//! heap gives them back and faults in fresh ones, or keeps them and grows. Here the pages move: `mremap` hangs
//! the page tables of the free blocks, each of which maps 2 MiB, below the new address. That costs a hundredth
//! of faulting the pages in, and the resident set does not rise.
//!
//! So memory is cut into **units** of 2 MiB. An **extent** is some neighbouring units that are one thing, and has
//! a kind. The **pagemap** tells the unit of an address; the **ledger** tells how many pages are handed out,
//! slack (behind the last page of a block), cached, or moving, and the **budget** what their sum may be: the
//! highest that was ever handed out, and a small tolerance. What is more is **purged**, the oldest first.
//!
//! # The kinds of extents, and the calls that move one to the other
//!
//! ```text
//!                 alloc: the cache has one that fits
//!        .-----------------------------------------------.
//!        |                                               |
//!        v                    free                       |
//!     +------+ ------------------------------------> +--------+
//!     | Live |    realloc: the end that is cut off   | Cached |
//!     +------+ ------------------------------------> +--------+
//!        ^  |                                          |    |
//!        |  | realloc moves its pages           gather |    | purge_excess: pages dropped
//!        |  | free, attributes altered    moves pages  |    | decay, trim: unmapped
//!        |  v                                          v    v
//!        |  +-------------------------------------------------+
//!        '--| Busy: one thread's, which is in a system call   |
//! alloc has +-------------------------------------------------+
//! filled it       |   ^  alloc          |    ^  alloc: mapped again
//!    pages gone   v   |                 v    |
//!              +-------+  unmapped    +------+      the system keeps it: Stuck, for ever
//!              | Empty |              | Hole |      a move lost it: Gone, then None
//!              +-------+              +------+      addresses not ours: None
//! ```
//!
//! The free kinds wait in a pool each. No lock is held across a system call: whoever enters one marks the extent
//! `Busy`, and books what happened when it comes back.
//!
//! # The files
//!
//! - books: `amount`, `unit`, `kind`, `list`, `pool`, `pagemap`, `space`, `block`, `ledger`, `budget`, `thrash`, `age`,
//!   `mappings`, `stats`; in debug builds `check` compares the ledger with the pagemap.
//! - deeds: `engine` (the state and its lock), `alloc`, `address`, `gather`, `realloc`, `grow`, `relocate` (what two of them
//!   share), `free`, `attributes`, `purge`, `slack`, `fork`.
//! - the system: `map` is what is asked of it, `kernel`, `syscalls` and `zero` are Linux, `fake` is a model for the tests.
//!
//! This file is the front door, and all that is called from outside: one recycler, errno kept, bytes in and out.

mod address;
mod age;
mod alloc;
mod amount;
mod attributes;
mod block;
mod budget;
#[cfg(debug_assertions)]
mod check;
mod engine;
#[cfg(test)]
mod fake;
mod fork;
#[cfg(test)]
mod fork_tests;
mod free;
mod gather;
mod grow;
mod kernel;
mod kind;
mod ledger;
mod list;
mod map;
mod mappings;
#[cfg(test)]
mod marks;
mod origin;
mod pagemap;
mod pool;
mod purge;
mod realloc;
mod relocate;
mod slack;
mod space;
mod stats;
#[cfg(test)]
mod steps;
mod syscalls;
mod tally;
#[cfg(test)]
mod tests;
mod thrash;
mod unit;
#[cfg(test)]
mod world;
mod zero;

use crate::process::{fatal, procfs};
use amount::Bytes;
use engine::Recycler;
use free::Freed;
use kernel::Kernel;
pub use origin::LiveBlock;
use pagemap::Pagemap;
use realloc::Resized;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
pub use tally::{Stats, FALLBACK_NAMES};
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

static TABLE: Pagemap = Pagemap::new();
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

/// For a process whose malloc is not ours, or whose recycler is given up: large blocks are the backend's from now on.
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

/// True for a request that is ours. Alignments up to 2 MiB come by nature; larger ones are refused.
#[inline]
pub fn takes(size: usize, align: usize) -> bool {
    align <= ALIGN_MAX && size >= MIN_BYTES.load(Relaxed) && ENABLED.load(Relaxed)
}

/// An uninitialised block for a request that `takes` grants, or null: the backend is to serve it.
pub fn alloc(size: usize) -> *mut u8 {
    alloc_block(size, false)
}

pub fn alloc_zeroed(size: usize) -> *mut u8 {
    alloc_block(size, true)
}

fn alloc_block(size: usize, zeroed: bool) -> *mut u8 {
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

/// False: not a block of the recycler. Ends the process when it is no block of anybody's.
#[inline]
pub fn free(pointer: *mut u8) -> bool {
    let start = pointer as usize;
    if is_candidate(pointer) {
        let _errno = Errno::keep();
        match RECYCLER.free(start) {
            Freed::Done => return true,
            Freed::NotOurs => {}
            Freed::Twice => fatal::abort_with("free(): double free of", start),
        }
    }
    if RECYCLER.holds(start) {
        fatal::abort_with("free(): double free of, or invalid pointer", start);
    }
    false
}

/// Ends the process when the pointer is no block of anybody's.
pub fn realloc(pointer: *mut u8, new_size: usize) -> Realloc {
    let _errno = Errno::keep();
    if RECYCLER.find(pointer as usize).is_none() {
        if RECYCLER.holds(pointer as usize) {
            fatal::abort_with("realloc(): freed or invalid pointer", pointer as usize);
        }
        return Realloc::NotOurs;
    }
    if new_size < MIN_BYTES.load(Relaxed) {
        return Realloc::MoveToBackend;
    }
    match RECYCLER.resize(pointer as usize, new_size) {
        Resized::GivenUp => Realloc::MoveToBackend,
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

/// The same where there can be no governor: at calls of the program, as often as a governor would.
pub fn decay_if_due() {
    let _errno = Errno::keep();
    RECYCLER.decay_if_due(DECAY_MS.load(Relaxed));
}

/// Returns everything cached and all slack. Answers bytes.
pub fn trim() -> u64 {
    let _errno = Errno::keep();
    RECYCLER.trim().0
}

/// What is set now must outlive the reset of a forked child's books.
fn settled_books() -> engine::Locked<'static> {
    RECYCLER.settle();
    RECYCLER.lock()
}

/// Near a memory limit nothing is kept beyond the peak.
pub fn set_pressure(near_limit: bool) {
    settled_books().space.tolerance.near_limit = near_limit;
}

/// The bytes that the process may use, once somebody has looked: keeps the tolerance away from them.
pub fn set_memory_limit(bytes: Option<u64>) {
    settled_books().space.tolerance.memory_limit = bytes.map(Bytes);
}

/// Notes who allocated a block that `alloc` or `realloc` gave just now.
#[inline]
pub fn set_origin(pointer: *const u8, origin: u64) {
    RECYCLER.set_origin(pointer as usize, origin);
}

/// Every live block; a few that come meanwhile may be missing.
pub fn live_blocks() -> Vec<LiveBlock> {
    let now = usize::try_from(RECYCLER.stats().live_blocks).unwrap_or(0);
    let mut blocks = Vec::with_capacity(now + 64);
    RECYCLER.live_blocks(&mut blocks);
    blocks
}

/// The governor runs and will call `decay`: more may be kept between frees.
pub fn set_governed(governed: bool) {
    settled_books().governed = governed;
}

/// The governor could not be started: until it is, little is kept, as nothing ages it.
pub fn set_ungovernable() {
    settled_books().ungovernable = true;
}

/// True once the process holds enough in large blocks to be worth a governor.
#[inline]
pub fn wants_governor() -> bool {
    RECYCLER.heavy.load(Relaxed)
}

/// What large blocks hold now: exact.
pub fn live_bytes() -> u64 {
    RECYCLER.live().0
}

pub fn stats() -> Stats {
    let mut stats = RECYCLER.stats();
    stats.enabled = ENABLED.load(Relaxed);
    stats
}

/// Before a fork: whoever writes the books ends, and nobody begins, as far as some milliseconds suffice.
pub fn rest_for_fork() {
    RECYCLER.state.rest_for_fork();
}

/// After it, in the parent.
pub fn end_rest() {
    RECYCLER.state.end_rest();
}

/// What the child of a fork makes of the recycler: its own at the first need, or nothing at all.
///
/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    // SAFETY: the same contract.
    if !unsafe { RECYCLER.after_fork_in_child() } {
        disable();
    }
}
