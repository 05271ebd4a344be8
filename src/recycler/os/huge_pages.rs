//! The advice on huge pages for large blocks. The process decides once, with its first mapping.
//!
//! All units carry the same advice. Pages move between mappings, and the kernel merges only VMAs
//! with equal attributes. So the advice counts as a default attribute of a mapping:
//! `reset_attributes` restores it after a program changed it. Repeated advice has no effect.

use crate::os::syscalls::advise;
use flarena_shared::huge_pages::{Advice, Choice, Decision};
use flarena_sys::{proc::huge_pages, seccomp};
use rustix::mm::Advice as Call;
use std::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};

/// Bits of the decision.
const DECIDED: u8 = 1;
const REQUEST: u8 = 2;
const DECLINE: u8 = 4;
const FULL_BLOCKS_REQUEST: u8 = 8;

/// The user's choice and the decision that follows from it. Threads that decide at the same time
/// decide the same.
pub struct HugePages {
    choice: AtomicU8,
    decision: AtomicU8,
    /// The largest page below 2 MiB that a fault can populate; 0: a base page.
    fault_bytes: AtomicU32,
}

impl HugePages {
    pub const fn new() -> Self {
        HugePages {
            choice: AtomicU8::new(Choice::Auto as u8),
            decision: AtomicU8::new(0),
            fault_bytes: AtomicU32::new(0),
        }
    }

    /// Called before the first block, except for the blocks of libc's startup, which keep their
    /// advice.
    pub fn choose(&self, choice: Choice) {
        self.choice.store(choice as u8, Relaxed);
        self.decision.store(0, Relaxed);
    }

    pub fn is_decided(&self) -> bool {
        self.has(DECIDED)
    }

    /// Gives the advice of the process to a new mapping.
    pub fn advise_fresh(&self, address: usize, bytes: usize) {
        if !self.is_decided() {
            let decision = self.decide();
            let fault_bytes = decision.fault_kb.map_or(0, |kb| kb << 10);
            self.fault_bytes.store(fault_bytes, Relaxed);
            self.decision.store(bits_of(decision), Relaxed);
        }
        if self.has(REQUEST) {
            advise_huge(address, bytes, Call::LinuxHugepage);
        } else if self.has(DECLINE) {
            advise_huge(address, bytes, Call::LinuxNoHugepage);
        }
    }

    /// Repeats the request for huge pages. Where the process makes none, the advice of a program
    /// stays: no call restores "no advice".
    pub fn repeat_request(&self, address: usize, bytes: usize) {
        if self.has(REQUEST) {
            advise_huge(address, bytes, Call::LinuxHugepage);
        }
    }

    /// Blocks that fill their units request huge pages.
    pub fn full_blocks_use_huge_pages(&self) -> bool {
        self.has(FULL_BLOCKS_REQUEST)
    }

    pub fn are_requested(&self) -> bool {
        self.has(REQUEST | FULL_BLOCKS_REQUEST)
    }

    pub fn fault_bytes(&self) -> usize {
        self.fault_bytes.load(Relaxed) as usize
    }

    fn has(&self, any_of: u8) -> bool {
        self.decision.load(Relaxed) & any_of != 0
    }

    fn decide(&self) -> Decision {
        if !seccomp::allows_common_calls() {
            return Decision::default();
        }
        let choice = self.choice.load(Relaxed);
        let choices = [Choice::Off, Choice::TwoMib];
        let choice = choices.into_iter().find(|known| *known as u8 == choice);
        huge_pages::offer().decide(choice.unwrap_or_default())
    }
}

fn advise_huge(address: usize, bytes: usize, call: Call) {
    // SAFETY: advice on huge pages does not change the contents of memory.
    unsafe { advise(address, bytes, call) };
}

fn bits_of(decision: Decision) -> u8 {
    let fresh = match decision.fresh {
        Advice::Nothing => 0,
        Advice::Ask => REQUEST,
        Advice::Decline => DECLINE,
    };
    let full = if decision.full_blocks_ask {
        FULL_BLOCKS_REQUEST
    } else {
        0
    };
    DECIDED | fresh | full
}
