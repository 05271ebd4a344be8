//! A number that is set once, by the first thread that needs it, while other threads wait.
//!
//! Invariant: `init` runs once, and a thread that sees the cell set also sees all that `init` wrote.
//! The child of a fork must not call it while the parent's other thread runs `init`; where that can
//! happen, use `sync::racy_once`.

use std::time::Duration;

use crate::sync::primitives::{self, AtomicU8, Ordering};

const UNSET: u8 = 0;
const RUNNING: u8 = 1;

pub struct WaitingOnce(AtomicU8);

impl WaitingOnce {
    /// The least number that can be set.
    pub const FIRST: u8 = 2;

    pub const fn new() -> Self {
        WaitingOnce(AtomicU8::new(UNSET))
    }

    /// True if the cell holds this number. Does not order reads of what `init` wrote.
    #[inline(always)]
    pub fn holds(&self, number: u8) -> bool {
        self.0.load(Ordering::Relaxed) == number
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) >= Self::FIRST
    }

    /// Sets the cell to the result of `init`, unless it is set. Waits if another thread runs `init`.
    #[cold]
    pub fn set_with(&self, init: impl FnOnce() -> u8) {
        let claim = self
            .0
            .compare_exchange(UNSET, RUNNING, Ordering::Acquire, Ordering::Acquire);
        match claim {
            // The store comes last: a thread that sees the number may use all that `init` wrote.
            Ok(_) => self.0.store(init(), Ordering::Release),
            Err(RUNNING) => self.wait(),
            Err(_) => {}
        }
    }

    /// Another thread runs `init`, which takes microseconds and waits for no thread. The thread may have
    /// a lower priority than this one, which then must sleep: a yield would return at once.
    fn wait(&self) {
        while !self.is_set() {
            primitives::sleep(Duration::from_micros(50));
        }
    }
}
