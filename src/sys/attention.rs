//! One word that says whether the calls for large blocks have more to do than to serve the block.
//!
//! A module sets its bit when it gets work, and the call that finds no work left clears it. The paths of malloc and free
//! compare the word with one constant. The kernel clears the word in a copy of the process that was made without fork
//! handlers (`MADV_WIPEONFORK`): by the system call `clone`. There the word always calls for attention.
//!
//! Invariant: a bit may be set without work, but work never waits behind a clear bit.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::AcqRel, Ordering::Relaxed};

use rustix::mm::Advice;

use crate::proc::procfs;

/// Sites are on.
pub const SITES: u32 = 1;
/// A call may have to start the governor, or to do its work.
pub const GOVERNOR: u32 = 2;
/// The allowance below a memory limit is used up.
pub const HEADROOM: u32 = 4;
/// A limit of the system leaves little room for free extents.
pub const ROOM: u32 = 8;
/// What a call for a large block may have to do.
const TASKS: u32 = SITES | GOVERNOR | HEADROOM | ROOM;
/// A memory limit is watched, so a free compares its pages with the allowance. Other calls have nothing to do.
pub const WATCHED: u32 = 16;
/// This process is no copy.
const OWN: u32 = 1 << 31;

struct Word(AtomicU32);

impl Word {
    #[inline(always)]
    fn is_quiet(&self) -> bool {
        self.0.load(Relaxed) & (OWN | TASKS) == OWN
    }

    #[inline(always)]
    fn may_want(&self, bit: u32) -> bool {
        self.0.load(Relaxed) & (OWN | bit) != OWN
    }

    fn set(&self, bit: u32) {
        // Unconditional: the exchange in `settle` either comes later and shows the module's state, or leaves the bit set.
        self.0.fetch_or(bit, AcqRel);
    }

    fn settle(&self, bit: u32, has_work: impl Fn() -> bool) {
        if self.0.load(Relaxed) & bit == 0 || has_work() {
            return;
        }
        self.0.fetch_and(!bit, AcqRel);
        // Another thread may have got work after the question, and have found the bit set.
        if has_work() {
            self.set(bit);
        }
    }
}

/// One page of the largest size: the advice must not reach other variables.
#[cfg_attr(target_arch = "aarch64", repr(C, align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(4096)))]
struct Page(Word);

static PAGE: Page = Page(Word(AtomicU32::new(0)));
/// The kernel clears the page in a copy. False before the constructor, and before Linux 4.14.
static IS_WIPED: AtomicBool = AtomicBool::new(false);

/// False if a call for a large block has more to do.
#[inline(always)]
pub fn is_quiet() -> bool {
    PAGE.0.is_quiet()
}

/// True if the module of this bit may have work.
#[inline(always)]
pub fn may_want(bit: u32) -> bool {
    PAGE.0.may_want(bit)
}

/// The module has work. Its own state says so before this call.
pub fn set(bit: u32) {
    PAGE.0.set(bit);
}

/// Clears the bit of a module that has no work any more.
pub fn settle(bit: u32, has_work: impl Fn() -> bool) {
    PAGE.0.settle(bit, has_work);
}

/// From now on a copy of this process is detected. The constructor calls this before there are threads.
pub fn detect_copies() {
    let bytes = size_of::<Page>();
    if !IS_WIPED.load(Relaxed) && bytes.is_multiple_of(procfs::page_bytes()) {
        let page = (&raw const PAGE).cast_mut().cast();
        // SAFETY: the range holds nothing but the word, and `accept` sets the word in each copy.
        let is_wiped = unsafe { rustix::mm::madvise(page, bytes, Advice::LinuxWipeOnFork) }.is_ok();
        IS_WIPED.store(is_wiped, Relaxed);
    }
    accept();
}

/// This process is no copy any more: its state has been reset. Makes no system call, which a filter may punish.
pub fn accept() {
    PAGE.0 .0.store(OWN | TASKS | WATCHED, Relaxed);
}

/// True if this process is a copy that was made without fork handlers. A vfork child shares its parent's memory and sees
/// no change.
#[inline]
pub fn is_copy() -> bool {
    PAGE.0 .0.load(Relaxed) & OWN == 0 && IS_WIPED.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_bit_stays_while_its_module_has_work() {
        let word = Word(AtomicU32::new(OWN | TASKS));
        word.settle(SITES, || true);
        assert!(word.may_want(SITES) && !word.is_quiet());
        for bit in [SITES, GOVERNOR, HEADROOM, ROOM] {
            word.settle(bit, || false);
            assert!(!word.may_want(bit));
        }
        assert!(word.is_quiet());
        word.set(ROOM);
        assert!(word.may_want(ROOM) && !word.may_want(SITES) && !word.is_quiet());
    }

    #[test]
    fn a_bit_stays_if_its_module_gets_work_while_the_bit_is_cleared() {
        let word = Word(AtomicU32::new(OWN | ROOM));
        let questions = Cell::new(0);
        word.settle(ROOM, || questions.replace(questions.get() + 1) > 0);
        assert!(word.may_want(ROOM));
    }

    #[test]
    fn a_copy_of_the_process_is_detected_and_wants_all() {
        detect_copies();
        assert!(!is_copy());
        // SAFETY: the child only reads the word and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_right = is_copy() && !is_quiet() && may_want(SITES);
            // SAFETY: ends this process alone.
            unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: the child is this process's own.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
    }
}
