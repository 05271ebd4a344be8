//! What concerns the process as a whole: fork, and the statistics.

use super::amount::Pages;
use super::engine::{Recycler, State};
use super::ledger::Column;
use super::map::Map;
use super::space::Run;
use super::stats::{Fallback, Stats};
use super::unit::{flag, kind};
use std::sync::atomic::Ordering::Relaxed;

/// How often fork looks for system calls in flight. They take microseconds, but for the unmapping
/// of gigabytes: after the first looks, each comes a millisecond later.
const FORK_TRIES: u32 = 4_000;
const FORK_QUICK_TRIES: u32 = 2_000;

impl<M: Map> Recycler<M> {
    /// Takes the lock for a fork, when no other thread has runs in its hands.
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
        state.inherited = true;
    }

    pub fn stats(&self) -> Stats {
        let state = self.state.lock();
        let ledger = &state.space.ledger;
        let mut fallbacks = state.tally.fallbacks;
        if let Some(count) = fallbacks.get_mut(Fallback::Cleansed as usize) {
            *count = self.cleansed.load(Relaxed);
        }
        let bytes = |pages: Pages| state.space.geometry.bytes(pages).0;
        Stats {
            enabled: true,
            live_blocks: ledger.live_blocks(),
            live_bytes: bytes(ledger.live()),
            cached_bytes: bytes(ledger.cached() + ledger.moving()),
            slack_bytes: bytes(ledger.slack()),
            peak_live_bytes: bytes(ledger.peak_live()),
            recycled_bytes_total: bytes(state.tally.recycled),
            moved_bytes_total: bytes(state.tally.moved),
            fresh_bytes_total: bytes(state.tally.fresh),
            returned_bytes_total: bytes(state.tally.returned),
            fallbacks,
        }
    }
}

impl State {
    /// Ends what threads of the parent had begun, when fork could not wait for them.
    fn finish_pinned(&mut self) {
        while self.space.pinned.first() != 0 {
            let head = self.space.pinned.first();
            let unit = self.space.unit(head);
            self.space.unpin(head);
            let run = Run {
                head,
                len: unit.len(),
            };
            if unit.has(flag::FREED) {
                unit.lower(flag::FREED);
                self.space.vacate(run, Column::Cached);
                self.space.give(run, kind::CACHED);
            } else {
                // Its slack may or may not be gone: it is offered again.
                let full = self.space.geometry.pages_per_unit();
                self.space.offer_slack(run, full, Column::System);
            }
        }
    }
}
