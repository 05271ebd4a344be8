//! The recycler's numbers at one moment.

use crate::core::amount::{Bytes, Pages};
use crate::os::vm::Vm;
use crate::state::counters::{Fallback, Stats};
use crate::state::recycler::{Recycler, GIVEN_UP};
use std::sync::atomic::Ordering::Relaxed;

impl<M: Vm> Recycler<M> {
    pub fn held_by_blocks(&self) -> Bytes {
        let state = self.state.lock();
        state.space.geometry.bytes(state.space.ledger.live())
    }

    /// All zero where the recycler is given up.
    pub fn numbers(&self) -> Stats {
        if self.forked.load(Relaxed) == GIVEN_UP {
            return Stats::default();
        }
        let state = self.state.lock();
        let ledger = &state.space.ledger;
        let mut fallbacks = state.counters.fallbacks;
        if let Some(count) = fallbacks.get_mut(Fallback::AttributesReset as usize) {
            *count = self.resets.load(Relaxed);
        }
        let bytes = |pages: Pages| state.space.geometry.bytes(pages).count();
        Stats {
            enabled: true,
            asks_for_huge_pages: false,
            decay_ms: 0,
            live_blocks: ledger.block_count(),
            live_bytes: bytes(ledger.live()),
            cached_bytes: bytes(ledger.cached() + ledger.moving() + ledger.purging()),
            slack_bytes: bytes(ledger.slack()),
            peak_live_bytes: bytes(ledger.peak_live()),
            recycled_bytes_total: bytes(state.counters.recycled),
            moved_bytes_total: bytes(state.counters.moved),
            fresh_bytes_total: bytes(state.counters.fresh),
            returned_bytes_total: bytes(state.counters.returned),
            fallbacks,
        }
    }
}
