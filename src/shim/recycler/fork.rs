//! What the recycler does around a fork.

use super::engine::{Recycler, State};
use super::ledger::Column;
use super::map::Map;
use super::space::Extent;
use super::unit::{Flags, Free};
use std::sync::atomic::Ordering::Relaxed;

/// How often fork looks for system calls in flight. They take microseconds, but for the unmapping
/// of gigabytes: after the first looks, each comes a millisecond later.
const FORK_TRIES: u32 = 4_000;
const FORK_QUICK_TRIES: u32 = 2_000;

impl<M: Map> Recycler<M> {
    /// Takes the lock for a fork, when no other thread has extents in its hands.
    pub fn fork_prepare(&self) {
        for attempt in 0..FORK_TRIES {
            let state = self.state.lock();
            if state.in_flight == 0 {
                std::mem::forget(state);
                return;
            }
            drop(state);
            if attempt < FORK_QUICK_TRIES {
                std::thread::yield_now();
            } else {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        self.state.acquire();
    }

    /// # Safety
    /// Only after `fork_prepare`, once.
    pub unsafe fn fork_parent(&self) {
        // SAFETY: fork_prepare() ended with an acquire, which nobody released since.
        unsafe { self.state.release() };
    }

    /// Gives the cache back that a forked child inherited: at its first request, for most children execute
    /// another program and never make one.
    #[inline]
    pub fn drop_inherited(&self) {
        if self.inherited.load(Relaxed) && self.inherited.swap(false, Relaxed) {
            self.trim();
        }
    }

    /// The child has only this thread: nothing is in flight, nothing ages, and the cache is the parent's.
    ///
    /// # Safety
    /// Only after `fork_prepare` in the parent, once.
    pub unsafe fn fork_child(&self) {
        self.heavy.store(false, Relaxed);
        // SAFETY: fork_prepare() ended with an acquire, which this copy still shows as held.
        unsafe { self.state.release() };
        let mut state = self.state.lock();
        state.in_flight = 0;
        state.finish_pinned();
        let moving = state.space.ledger.moving();
        let ledger = &mut state.space.ledger;
        ledger.transfer(Column::Moving, Column::System, moving);
        state.space.tolerance.near_limit = false;
        state.governed = false;
        state.ungovernable = false;
        self.inherited.store(true, Relaxed);
    }
}

impl State {
    /// Ends what threads of the parent had begun, when fork could not wait for them.
    fn finish_pinned(&mut self) {
        while let Some(head) = self.space.pinned.first() {
            let unit = self.space.unit(head);
            self.space.unpin(head);
            let run = Extent {
                head,
                len: unit.len(),
            };
            if unit.has(Flags::FREED) {
                unit.lower(Flags::FREED);
                self.space.vacate(run, Column::Cached);
                self.space.give(run, Free::Cached);
            } else {
                // Its slack may or may not be gone: it is offered again.
                let full = self.space.geometry.pages_per_unit();
                self.space.offer_slack(run, full, Column::System);
            }
        }
    }
}
