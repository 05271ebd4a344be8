//! Allocation sites: which line of the program asked for a large block.
//!
//! A thread that allocates stands inside malloc, so its Python frames stand still: they are read without
//! the GIL, which a thread that allocates need not hold. What is read is checked first, by the Python
//! package, against what the interpreter itself says of six shapes of stacks; until then, and wherever
//! the two differ, nothing is read. A thread without Python is told by its name and the caller's library.
//!
//! What is kept is a number for each stack (`table`) and, beside the block's own record in the recycler,
//! that number and the round; `heap` has them for blocks that the backend serves. Code and lines are kept, and
//! never arguments or values.
//!
//! - pure: `layout` (where CPython keeps what), `lines` (its tables of lines), `intern` (numbers), `heap`.
//! - reading: `memory`, `walk`, `texts`, `table`; `interpreter` finds Python in the process.
//!
//! No lock, and nothing allocates: a forked child may go on at once.

mod heap;
mod intern;
mod interpreter;
mod layout;
mod lines;
mod memory;
mod table;
mod texts;
mod walk;

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU8};

pub use interpreter::{check_frames, prepare};
pub use table::{site, Site, SITES};

use flarena_recycler as recycler;
use heap::HeapBlock;
use memory::Direct;
use table::Stack;

const OFF: u8 = 0;
/// Only threads without Python are told apart.
const NATIVE: u8 = 1;
/// Python's frames are read.
const PYTHON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(OFF);
/// Threads that are reading frames: an interpreter that ends waits for them.
static READING: AtomicU32 = AtomicU32::new(0);
static ROUND: AtomicI32 = AtomicI32::new(NO_ROUND);

const NO_ROUND: i32 = -1;
/// Looks at readers before an ending interpreter goes on all the same.
const PATIENCE_YIELDS: u32 = 100_000;

/// Who allocated a block, and when: what the recycler keeps for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// 0: before sites were on, or no room for another.
    pub site: u32,
    pub round: Option<i32>,
}

impl Origin {
    fn to_word(self) -> u64 {
        let round = self.round.unwrap_or(NO_ROUND) as u32;
        u64::from(self.site) << 32 | u64::from(round.wrapping_add(1))
    }

    fn from_word(word: u64) -> Origin {
        let round = (word as u32).wrapping_sub(1) as i32;
        Origin {
            site: (word >> 32) as u32,
            round: (round >= 0).then_some(round),
        }
    }
}

/// Called by the constructor when the setting asks for it.
pub fn start_native() {
    STATE.store(NATIVE, SeqCst);
}

/// The self-check agreed: from now on frames are read. False where [`prepare`] was not called.
pub fn start_python() -> bool {
    if interpreter::prepared().is_none() {
        return false;
    }
    STATE.store(PYTHON, SeqCst);
    true
}

/// The self-check disagreed.
pub fn stop_all() {
    STATE.store(OFF, SeqCst);
    wait_for_readers();
}

/// The interpreter is about to end: other threads' states go away.
pub fn stop_python() {
    if STATE
        .compare_exchange(PYTHON, NATIVE, SeqCst, SeqCst)
        .is_ok()
    {
        wait_for_readers();
    }
}

fn wait_for_readers() {
    for _ in 0..PATIENCE_YIELDS {
        if READING.load(SeqCst) == 0 {
            return;
        }
        rustix::thread::sched_yield();
    }
}

/// The child has one thread, and it was not reading.
pub fn after_fork_in_child() {
    READING.store(0, SeqCst);
}

/// One load, where large blocks are made.
#[inline(always)]
pub fn is_on() -> bool {
    STATE.load(Relaxed) != OFF
}

/// Frames are read.
pub fn reads_python() -> bool {
    STATE.load(Relaxed) == PYTHON
}

/// The round that the program is in.
pub fn set_round(round: i64) {
    ROUND.store(i32::try_from(round).unwrap_or(i32::MAX), Relaxed);
}

pub fn round() -> Option<i32> {
    Some(ROUND.load(Relaxed)).filter(|round| *round >= 0)
}

/// Notes who allocated a block of the recycler's; `caller` is where malloc returns to, 0 if not known.
#[cold]
pub fn note(block: *const u8, caller: usize) {
    recycler::set_origin(block, origin_of(caller).to_word());
}

/// The same for a block of the backend's.
#[cold]
pub fn note_heap_block(block: *const u8, bytes: usize, caller: usize) {
    heap::keep(HeapBlock {
        start: block as usize,
        bytes,
        origin: origin_of(caller).to_word(),
    });
}

/// What was noted of a block of the backend's, until its owner puts it back.
#[must_use]
pub struct Forgotten(HeapBlock);

impl Forgotten {
    /// The backend did not take the block after all.
    pub fn put_back(self) {
        heap::keep(self.0);
    }
}

/// Called before the backend takes a block back, and another thread can have its address. Also where sites are off by
/// now: what they noted is still there.
#[inline]
pub fn forget_heap_block(block: *const u8) -> Option<Forgotten> {
    heap::forget(block as usize).map(Forgotten)
}

/// A live large block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
    pub origin: Origin,
}

/// Every live large block, whoever serves it. For reports: allocates.
pub fn live_blocks() -> Vec<Block> {
    let block = |start, bytes, origin| Block {
        start,
        bytes,
        origin: Origin::from_word(origin),
    };
    let recycled = recycler::live_blocks().into_iter();
    let recycled = recycled.map(|one| block(one.start, one.bytes, one.origin));
    let of_backend = heap::live_blocks().into_iter();
    let of_backend = of_backend.map(|one| block(one.start, one.bytes, one.origin));
    recycled.chain(of_backend).collect()
}

fn origin_of(caller: usize) -> Origin {
    let site = match read_stack() {
        0 => native_site(caller),
        site => site,
    };
    let round = round();
    Origin { site, round }
}

/// The site of this thread's Python stack; 0: it has none.
fn read_stack() -> u32 {
    READING.fetch_add(1, SeqCst);
    let mut site = 0;
    if STATE.load(SeqCst) == PYTHON {
        if let Some(python) = interpreter::prepared() {
            // SAFETY: the self-check found the layout right, and this thread, whose frames they are, is here.
            let memory = unsafe { Direct::new() };
            let mut stack = Stack::EMPTY;
            python.walk(&memory, |frame| stack.push(frame));
            if !stack.frames().is_empty() {
                site = table::of_stack(&memory, &python.interpreter, &stack);
            }
        }
    }
    READING.fetch_sub(1, SeqCst);
    site
}

fn native_site(caller: usize) -> u32 {
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes there. The call by its number: libc's may be another's.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    table::of_thread(name.get(..len).unwrap_or_default(), caller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_reads_back_and_no_origin_is_no_site() {
        for round in [None, Some(0), Some(7), Some(i32::MAX)] {
            let origin = Origin { site: 4096, round };
            assert_eq!(Origin::from_word(origin.to_word()), origin);
        }
        let none = Origin {
            site: 0,
            round: None,
        };
        assert_eq!(Origin::from_word(0), none);
    }

    #[test]
    fn a_thread_without_python_is_told_by_its_name() {
        let number = native_site(0x1000);
        assert_eq!(native_site(0x1000), number);
        assert_ne!(native_site(0x2000), number);
        assert!(matches!(
            site(number),
            Some(Site::Thread { caller: 0x1000, .. })
        ));
    }
}
