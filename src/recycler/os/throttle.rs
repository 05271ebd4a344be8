//! Few threads at a time are in calls that change the address space, or look at much of it.
//!
//! A free asks the kernel whether the block's mapping is as it was made (`witness`), sometimes whether there are guards in
//! it, and a block of several mappings costs eight system calls more (`attributes`). Each has the kernel's lock of all
//! mappings. Threads that want it at once put each other to sleep: 16 of them, on two processors, lost half of their rate.
//!
//! This is a hint and no lock. Whoever has given way often enough opens the gate anew, and those that are in it are counted
//! no more: a thread that never leaves (it was killed, or jumped out of a handler) costs one behind it that much, and nobody
//! after that. A forked child begins with open gates.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Longer than such a free takes, on a processor that is given away so often.
const TIMES: usize = 32;

pub struct ConcurrencyLimit {
    most: u32,
    /// How many are in it, and since how many openings: `COUNT_BITS` of the one, above them the other.
    state: AtomicU32,
}

const COUNT_BITS: u32 = 16;
const COUNT: u32 = (1 << COUNT_BITS) - 1;

/// The way through. Ends with it.
pub struct Permit<'a> {
    gate: &'a ConcurrencyLimit,
    opening: u32,
}

impl ConcurrencyLimit {
    /// For so many at a time.
    pub const fn new(most: u32) -> Self {
        ConcurrencyLimit {
            most,
            state: AtomicU32::new(0),
        }
    }

    pub fn acquire(&self, yield_now: impl Fn()) -> Permit<'_> {
        let enter = |state: u32| (state & COUNT < self.most).then(|| state + 1);
        for _ in 0..TIMES {
            if let Ok(before) = self.state.fetch_update(Relaxed, Relaxed, enter) {
                return self.passage(before);
            }
            yield_now();
        }
        self.reset();
        self.passage(self.state.fetch_add(1, Relaxed))
    }

    fn passage(&self, before: u32) -> Permit<'_> {
        Permit {
            gate: self,
            opening: before >> COUNT_BITS,
        }
    }

    /// In a forked child, which has none of the threads that were in it; and where one may never leave.
    pub fn reset(&self) {
        let next = |state: u32| Some((state | COUNT).wrapping_add(1));
        let _ = self.state.fetch_update(Relaxed, Relaxed, next);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let counts = |state: u32| state >> COUNT_BITS == self.opening && state & COUNT > 0;
        let next = |state: u32| counts(state).then(|| state - 1);
        let _ = self.gate.state.fetch_update(Relaxed, Relaxed, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn so_many_pass_at_a_time_and_who_waited_long_enough_goes_on() {
        for most in [1, 2] {
            let gate = ConcurrencyLimit::new(most);
            let waits = Cell::new(0);
            let wait = || waits.set(waits.get() + 1);
            let inside: Vec<_> = (0..most).map(|_| gate.acquire(wait)).collect();
            assert_eq!(waits.get(), 0);
            let another = gate.acquire(wait);
            assert_eq!(waits.get(), TIMES);
            drop(inside);
            drop(another);
            drop(gate.acquire(wait));
            assert_eq!(waits.get(), TIMES);
        }
    }

    #[test]
    fn one_that_never_leaves_costs_one_of_those_behind_it_a_wait() {
        let gate = ConcurrencyLimit::new(1);
        std::mem::forget(gate.acquire(|| unreachable!("nobody is in it")));
        let waits = Cell::new(0);
        for _ in 0..3 {
            drop(gate.acquire(|| waits.set(waits.get() + 1)));
            assert_eq!(waits.get(), TIMES);
        }
    }

    #[test]
    fn a_passage_that_ends_after_the_gate_was_opened_lets_no_one_more_in() {
        let gate = ConcurrencyLimit::new(1);
        let before = gate.acquire(|| unreachable!("nobody is in it"));
        gate.reset();
        drop(before);
        let waits = Cell::new(0);
        let _inside = gate.acquire(|| unreachable!("nobody is in it"));
        drop(gate.acquire(|| waits.set(waits.get() + 1)));
        assert_eq!(waits.get(), TIMES);
    }
}
