//! Huge pages for large blocks: what a fresh mapping is told, decided once for the process.
//!
//! All units carry the same advice, because pages are moved between mappings, and mappings that differ are not
//! joined. So the advice is a part of how a mapping was made: what a program advises otherwise is put right with the
//! rest of its marks (`attributes`), and to ask again for what was asked changes nothing.

use crate::os::syscalls::advise;
use flarena_shared::huge_pages::{Advice, Choice, Decision};
use flarena_sys::{proc::huge_pages, seccomp};
use rustix::mm::Advice as Call;
use std::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};

/// Bits of the decision.
const DECIDED: u8 = 1;
const ASK: u8 = 2;
const DECLINE: u8 = 4;
const FULL_BLOCKS_ASK: u8 = 8;

/// The choice, and the decision that was made with it. Threads that decide at the same time decide the same.
pub struct HugePages {
    choice: AtomicU8,
    decision: AtomicU8,
    /// What a fault may bring; 0: a plain page.
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

    /// Before the first block but those of libc's own start, which then keep what they were told.
    pub fn choose(&self, choice: Choice) {
        self.choice.store(choice as u8, Relaxed);
        self.decision.store(0, Relaxed);
    }

    pub fn is_decided(&self) -> bool {
        self.decision.load(Relaxed) & DECIDED != 0
    }

    /// A mapping was made.
    pub fn advise_fresh(&self, address: usize, bytes: usize) {
        if !self.is_decided() {
            let decision = self.decide();
            let fault_bytes = decision.fault_kb.map_or(0, |kb| kb << 10);
            self.fault_bytes.store(fault_bytes, Relaxed);
            self.decision.store(bits_of(decision), Relaxed);
        }
        match self.decision.load(Relaxed) {
            bits if bits & ASK != 0 => tell(address, bytes, Call::LinuxHugepage),
            bits if bits & DECLINE != 0 => tell(address, bytes, Call::LinuxNoHugepage),
            _ => {}
        }
    }

    /// Advice that a program gave otherwise; what it declined where nothing was asked stays so.
    pub fn advise_again(&self, address: usize, bytes: usize) {
        if self.decision.load(Relaxed) & ASK != 0 {
            tell(address, bytes, Call::LinuxHugepage);
        }
    }

    /// Blocks that fill their units are to ask for huge pages.
    pub fn full_blocks_use_huge_pages(&self) -> bool {
        self.decision.load(Relaxed) & FULL_BLOCKS_ASK != 0
    }

    pub fn are_requested(&self) -> bool {
        self.decision.load(Relaxed) & (ASK | FULL_BLOCKS_ASK) != 0
    }

    pub fn fault_bytes(&self) -> usize {
        self.fault_bytes.load(Relaxed) as usize
    }

    fn decide(&self) -> Decision {
        if seccomp::is_closed() {
            return Decision::default();
        }
        let choice = self.choice.load(Relaxed);
        let choices = [Choice::Off, Choice::TwoMib];
        let choice = choices.into_iter().find(|known| *known as u8 == choice);
        huge_pages::offer().decide(choice.unwrap_or_default())
    }
}

fn tell(address: usize, bytes: usize, call: Call) {
    // SAFETY: the size of the pages changes nothing of what is in them.
    unsafe { advise(address, bytes, call) };
}

fn bits_of(decision: Decision) -> u8 {
    let fresh = match decision.fresh {
        Advice::Nothing => 0,
        Advice::Ask => ASK,
        Advice::Decline => DECLINE,
    };
    let full = if decision.full_blocks_ask {
        FULL_BLOCKS_ASK
    } else {
        0
    };
    DECIDED | fresh | full
}
