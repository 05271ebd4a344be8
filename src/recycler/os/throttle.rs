//! Limits how many threads probe or change the address space at the same time.
//!
//! A free probes the block's VMAs, and a block of several VMAs costs eight more system calls
//! (`ops::attributes`). Each call takes the kernel's lock of the address space, and a thread that
//! finds the lock taken sleeps. Without the limit, 16 threads on two processors lose half of their
//! throughput.
//!
//! The limit is a hint, not a lock. After 32 yields a waiter resets the counter and proceeds. A
//! permit leaked by a thread that died delays one waiter at most.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A free takes less time than this many yields.
const MAX_YIELDS: usize = 32;

const COUNT_BITS: u32 = 16;
const COUNT: u32 = (1 << COUNT_BITS) - 1;

pub struct ConcurrencyLimit {
    limit: u32,
    /// The number of permits in use, in `COUNT_BITS`. Above them the epoch, which counts the
    /// resets.
    state: AtomicU32,
}

/// Dropping the permit returns it.
pub struct Permit<'a> {
    limit: &'a ConcurrencyLimit,
    epoch: u32,
}

impl ConcurrencyLimit {
    pub const fn new(limit: u32) -> Self {
        ConcurrencyLimit {
            limit,
            state: AtomicU32::new(0),
        }
    }

    pub fn acquire(&self, yield_now: impl Fn()) -> Permit<'_> {
        let enter = |state: u32| (state & COUNT < self.limit).then(|| state + 1);
        for _ in 0..MAX_YIELDS {
            if let Ok(before) = self.state.fetch_update(Relaxed, Relaxed, enter) {
                return self.permit(before);
            }
            yield_now();
        }
        self.reset();
        self.permit(self.state.fetch_add(1, Relaxed))
    }

    fn permit(&self, before: u32) -> Permit<'_> {
        Permit {
            limit: self,
            epoch: before >> COUNT_BITS,
        }
    }

    /// Sets the count to zero and begins a new epoch; permits of older epochs are not counted when
    /// they return. Used when a holder may never return its permit, as in a forked child.
    pub fn reset(&self) {
        let next = |state: u32| Some((state | COUNT).wrapping_add(1));
        let _ = self.state.fetch_update(Relaxed, Relaxed, next);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let is_counted = |state: u32| state >> COUNT_BITS == self.epoch && state & COUNT > 0;
        let next = |state: u32| is_counted(state).then(|| state - 1);
        let _ = self.limit.state.fetch_update(Relaxed, Relaxed, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn waiter_proceeds_after_max_yields_when_all_permits_are_in_use() {
        for most in [1, 2] {
            let limit = ConcurrencyLimit::new(most);
            let yields = Cell::new(0);
            let wait = || yields.set(yields.get() + 1);
            let held: Vec<_> = (0..most).map(|_| limit.acquire(wait)).collect();
            assert_eq!(yields.get(), 0);
            let another = limit.acquire(wait);
            assert_eq!(yields.get(), MAX_YIELDS);
            drop(held);
            drop(another);
            drop(limit.acquire(wait));
            assert_eq!(yields.get(), MAX_YIELDS);
        }
    }

    #[test]
    fn leaked_permit_delays_one_waiter() {
        let limit = ConcurrencyLimit::new(1);
        std::mem::forget(limit.acquire(|| unreachable!("the permit is free")));
        let yields = Cell::new(0);
        for _ in 0..3 {
            drop(limit.acquire(|| yields.set(yields.get() + 1)));
            assert_eq!(yields.get(), MAX_YIELDS);
        }
    }

    #[test]
    fn permit_returned_after_a_reset_is_not_counted() {
        let limit = ConcurrencyLimit::new(1);
        let old = limit.acquire(|| unreachable!("the permit is free"));
        limit.reset();
        drop(old);
        let yields = Cell::new(0);
        let _held = limit.acquire(|| unreachable!("the permit is free"));
        drop(limit.acquire(|| yields.set(yields.get() + 1)));
        assert_eq!(yields.get(), MAX_YIELDS);
    }
}
