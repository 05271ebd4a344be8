//! One thread at a time changes the address space, where that may wait.
//!
//! A block of several mappings costs eight system calls at its free (`attributes`), and a look at each mapping; each has the
//! kernel's lock of all mappings for writing. Threads that do so at once put each other to sleep: 16 of them, on two processors, lost half of their rate.
//!
//! This is a hint and no lock. Whoever has given way often enough goes on: a thread that was killed, or that a fork has
//! left behind, holds nobody up.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Longer than such a free takes, on a processor that is given away so often.
const TIMES: usize = 32;

pub struct Gate(AtomicBool);

/// The way through. Ends with it.
pub struct Passage<'a>(Option<&'a Gate>);

impl Gate {
    pub const fn new() -> Self {
        Gate(AtomicBool::new(false))
    }

    pub fn pass(&self, give_way: impl Fn()) -> Passage<'_> {
        for _ in 0..TIMES {
            if !self.0.swap(true, Relaxed) {
                return Passage(Some(self));
            }
            give_way();
        }
        Passage(None)
    }

    /// In a forked child, which has none of the threads that were in it.
    pub fn open(&self) {
        self.0.store(false, Relaxed);
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.0 {
            gate.open();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_passes_at_a_time_and_who_waited_long_enough_goes_on() {
        let gate = Gate::new();
        let waits = Cell::new(0);
        let wait = || waits.set(waits.get() + 1);
        let first = gate.pass(wait);
        assert_eq!(waits.get(), 0);
        let second = gate.pass(wait);
        assert_eq!(waits.get(), TIMES);
        drop(second);
        // It went on beside the first, which is still there.
        drop(gate.pass(wait));
        assert_eq!(waits.get(), 2 * TIMES);
        drop(first);
        drop(gate.pass(wait));
        assert_eq!(waits.get(), 2 * TIMES);
    }
}
