//! A number that is set once, by the first thread that needs it, while other threads wait.
//!
//! Invariant: `init` runs once, and a thread that sees the cell set also sees all that `init` wrote.
//! The child of a fork must not call it while the parent's other thread runs `init`; where that can
//! happen, use `sync::racy_once`.

use std::time::Duration;

use crate::sync::primitives::{self, AtomicU64, AtomicU8, Ordering};

const UNSET: u8 = 0;
const RUNNING: u8 = 1;

pub struct WaitingOnce {
    state: AtomicU8,
    /// Token of the thread that runs `init`; 0: none does.
    runner: AtomicU64,
}

impl WaitingOnce {
    /// The least number that can be set.
    pub const FIRST: u8 = 2;

    pub const fn new() -> Self {
        WaitingOnce {
            state: AtomicU8::new(UNSET),
            runner: AtomicU64::new(0),
        }
    }

    /// True if the cell holds this number. Does not order reads of what `init` wrote.
    #[inline(always)]
    pub fn holds(&self, number: u8) -> bool {
        self.state.load(Ordering::Relaxed) == number
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.state.load(Ordering::Acquire) >= Self::FIRST
    }

    /// True if the calling thread runs `init`. It must not call `set_with` then, because it would wait for itself.
    pub fn is_running_here(&self) -> bool {
        self.runner.load(Ordering::Relaxed) == primitives::token()
    }

    /// Sets the cell to the result of `init`, unless it is set. Waits if another thread runs `init`.
    #[cold]
    pub fn set_with(&self, init: impl FnOnce() -> u8) {
        let claim =
            self.state
                .compare_exchange(UNSET, RUNNING, Ordering::Acquire, Ordering::Acquire);
        match claim {
            Ok(_) => {
                self.runner.store(primitives::token(), Ordering::Relaxed);
                let number = init();
                self.runner.store(0, Ordering::Relaxed);
                // The store comes last: a thread that sees the number may use all that `init` wrote.
                self.state.store(number, Ordering::Release);
            }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_runs_init_sees_it_run() {
        static ONCE: WaitingOnce = WaitingOnce::new();
        assert!(!ONCE.is_running_here());
        ONCE.set_with(|| {
            assert!(ONCE.is_running_here());
            let elsewhere = std::thread::spawn(|| ONCE.is_running_here());
            assert!(!elsewhere.join().unwrap());
            WaitingOnce::FIRST
        });
        assert!(ONCE.is_set() && !ONCE.is_running_here());
    }
}
