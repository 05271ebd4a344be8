//! Allocation sites: the line of the program that allocated each large block, and some of the small
//! ones, which `sampler` chooses.
//!
//! An allocating thread is inside malloc, so its Python frames do not change and are read without
//! the GIL: `layout` knows CPython's structures, `walk` visits the frames, `lines` finds the line.
//! `_sites.py` first compares six test stacks with the interpreter's own view; frames are read only
//! if all agree. `table` numbers the stacks, and decodes a frame when it is first seen.
//!
//! The recycler keeps number and round with each block, `heap` for the backend's blocks. Only code
//! and lines are kept, never arguments or values. Nothing here locks or allocates, so the child of a
//! fork can continue at once.

mod heap;
mod intern;
mod interpreter;
mod layout;
mod lines;
mod memory;
pub mod sampler;
mod table;
mod texts;
mod walk;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU8};

pub use heap::{Block, Origin};
pub use interpreter::{check_frames, prepare};
pub use table::{site, SITES};

use flarena_recycler as recycler;
use flarena_sys::{attention, seccomp};
use heap::BLOCKS;
use memory::Direct;
use table::RawStack;

const OFF: u8 = 0;
/// Sites of threads, without Python frames.
const NATIVE: u8 = 1;
/// Python's frames are read.
const PYTHON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OFF);
/// The number of threads that read frames. An ending interpreter waits for them.
static READING: AtomicU32 = AtomicU32::new(0);
static ROUND: AtomicI32 = AtomicI32::new(heap::NO_ROUND);

/// Small blocks have far more stacks than large ones, which keep a quarter of the sites.
const SITES_OF_SAMPLES: usize = SITES / 4 * 3;
/// An ending interpreter waits for so many yields at most.
const MAX_YIELDS: u32 = 100_000;

/// Blocks may have an origin from before they were turned off.
static WERE_STOPPED: AtomicBool = AtomicBool::new(false);

/// True if the self-check at Python's start has failed.
pub fn were_stopped() -> bool {
    WERE_STOPPED.load(Relaxed)
}

/// They were turned on in the running process.
static IS_LATE: AtomicBool = AtomicBool::new(false);

/// Called before sites are turned on in a running process.
pub fn set_late() {
    IS_LATE.store(true, Relaxed);
}

/// True if blocks may live that were allocated before sites were on.
pub fn is_late() -> bool {
    IS_LATE.load(Relaxed)
}

/// Called if the setting is on, or without a Python.
pub fn start_native() {
    STATE.store(NATIVE, SeqCst);
    attention::set(attention::SITES);
}

/// Starts to read frames, after the self-check has passed. False if [`prepare`] has not succeeded.
pub fn start_python() -> bool {
    if interpreter::prepared().is_none() {
        return false;
    }
    STATE.store(PYTHON, SeqCst);
    attention::set(attention::SITES);
    true
}

/// Called if the self-check at Python's start has failed.
pub fn stop_all() {
    WERE_STOPPED.store(true, Relaxed);
    STATE.store(OFF, SeqCst);
    wait_for_readers();
}

/// Called before the interpreter ends and frees the states of other threads.
pub fn stop_python() {
    if STATE
        .compare_exchange(PYTHON, NATIVE, SeqCst, SeqCst)
        .is_ok()
    {
        wait_for_readers();
    }
}

fn wait_for_readers() {
    for _ in 0..MAX_YIELDS {
        if READING.load(SeqCst) == 0 {
            return;
        }
        rustix::thread::sched_yield();
    }
}

/// The only thread of the child was in fork, and so it did not read frames.
pub fn after_fork_in_child() {
    READING.store(0, SeqCst);
}

#[inline(always)]
pub fn is_on() -> bool {
    STATE.load(Relaxed) != OFF
}

/// True if Python's frames are read.
pub fn reads_python() -> bool {
    STATE.load(Relaxed) == PYTHON
}

/// Sets the round of blocks that are allocated from now on.
pub fn set_round(round: i64) {
    ROUND.store(i32::try_from(round).unwrap_or(i32::MAX), Relaxed);
}

pub fn round() -> Option<i32> {
    Some(ROUND.load(Relaxed)).filter(|round| *round >= 0)
}

/// Records the origin of a block of the recycler. `caller` is malloc's return address; 0: unknown.
#[cold]
pub fn note(block: *const u8, caller: usize) {
    recycler::set_origin(block, origin_of(caller, SITES).to_word());
}

/// Records the origin of a large block of the backend.
#[cold]
pub fn note_large_heap_block(block: *const u8, bytes: usize, caller: usize) {
    keep_heap_block(block, bytes, origin_of(caller, SITES), false);
}

/// Records the origin of a small block of the backend that the sampler hit.
#[cold]
pub fn note_sample(block: *const u8, bytes: usize, caller: usize) {
    keep_heap_block(block, bytes, origin_of(caller, SITES_OF_SAMPLES), true);
}

fn keep_heap_block(block: *const u8, bytes: usize, origin: Origin, is_sample: bool) {
    BLOCKS.keep(Block {
        start: block as usize,
        bytes,
        origin,
        is_sample,
    });
}

/// The removed record of a block of the backend.
#[must_use]
pub struct Forgotten(Block);

impl Forgotten {
    /// Called if the backend neither freed nor resized the block.
    pub fn put_back(self) {
        BLOCKS.keep(self.0);
    }
}

/// Removes the record of a block. Called before the backend frees it, because then another thread
/// can get the address. Also called after sites were turned off, because records may remain.
#[inline]
pub fn forget_heap_block(block: *const u8) -> Option<Forgotten> {
    BLOCKS.forget(block as usize).map(Forgotten)
}

/// False for most blocks that have no record.
#[inline(always)]
pub fn may_have_record(block: *const u8) -> bool {
    BLOCKS.may_have(block as usize)
}

/// Records that found no room in the table so far.
pub fn lost_records() -> usize {
    BLOCKS.lost()
}

/// All live large blocks, of recycler and backend, and the sampled ones. For reports: allocates.
pub fn live_blocks() -> Vec<Block> {
    let recycled = recycler::live_blocks().into_iter().map(|one| Block {
        start: one.start,
        bytes: one.bytes,
        origin: Origin::from_word(one.origin),
        is_sample: false,
    });
    recycled.chain(BLOCKS.live()).collect()
}

/// The site of this thread's Python stack; `None` if frames are not read.
#[cold]
pub fn of_thread() -> Option<u32> {
    read_stack(SITES)
}

fn origin_of(caller: usize, room: usize) -> Origin {
    Origin {
        site: read_stack(room).unwrap_or_else(|| native_site(caller, room)),
        round: round(),
    }
}

/// The site of this thread's Python stack, among the first `room`; 0 if these are taken, `None` without a
/// Python stack.
fn read_stack(room: usize) -> Option<u32> {
    READING.fetch_add(1, SeqCst);
    let mut site = None;
    if STATE.load(SeqCst) == PYTHON
        && let Some(python) = interpreter::prepared()
    {
        // SAFETY: the self-check has verified the layout, and the frames are of this thread.
        let memory = unsafe { Direct::new() };
        let mut stack = RawStack::default();
        python.walk(&memory, |frame| stack.push(frame));
        if !stack.frames().is_empty() {
            site = Some(table::of_stack(&memory, &python.interpreter, &stack, room));
        }
    }
    READING.fetch_sub(1, SeqCst);
    site
}

fn native_site(caller: usize, room: usize) -> u32 {
    let mut name = [0u8; 16];
    // A program that restricted itself may be killed for the call.
    if seccomp::allows_common_calls() {
        // SAFETY: the kernel writes at most 16 bytes. Called by number, because a program may
        // replace libc's function.
        unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
    }
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    table::of_thread(name.get(..len).unwrap_or_default(), caller, room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_without_python_has_a_site_per_caller() {
        let number = native_site(0x1000, SITES);
        assert_eq!(native_site(0x1000, SITES), number);
        assert_ne!(native_site(0x2000, SITES), number);
        let stack = site(number).unwrap();
        assert!(stack.thread.is_some() && stack.frames.is_empty());
    }
}
