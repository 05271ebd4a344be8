//! The end of a block: its pages wait in the cache, unless the program altered the mapping.

use crate::core::amount::{Bytes, Pages};
use crate::core::page_ledger::Column;
use crate::core::unit::{Flags, Free, Unit};
use crate::os::vm::Map;
use crate::reuse::vma_attributes::Condition;
use crate::state::recycler::{Locked, Recycler};
use crate::state::space::Extent;
use crate::state::tally::Fallback;
use flarena_shared::defaults::GOVERNOR_START_CACHED_BYTES;
use std::sync::atomic::Ordering::Relaxed;

/// What became of a block that was to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    Done,
    /// No block of ours begins here.
    NotOurs,
    /// Another call freed it while this one was under way.
    Twice,
}

impl<M: Map> Recycler<M> {
    /// Caches a block's pages.
    pub fn free_block(&self, start: usize) -> Freed {
        let Some(extent) = self.find(start) else {
            return Freed::NotOurs;
        };
        if !self.settle() {
            self.free_unbooked(extent);
            return Freed::Done;
        }
        let now_ms = self.map.now_ms();
        let head = self.pagemap.unit(extent.head);
        let condition = self.refresh_attributes(extent, head.stamp(), now_ms);
        let mut state = self.lock_at(now_ms);
        if !head.begins_block() || head.has(Flags::FREED) {
            return Freed::Twice;
        }
        if condition != Condition::AsNew {
            head.raise(Flags::ALTERED);
        }
        match condition {
            Condition::Patched => state.tally.fell_back(Fallback::PatchedEnded),
            _ if head.has(Flags::ALTERED) => state.tally.fell_back(Fallback::AttributesAltered),
            _ => {}
        }
        if head.has(Flags::PINNED) {
            // The thread that returns its slack finishes the job.
            head.raise(Flags::FREED);
            return Freed::Done;
        }
        self.finish_free(state, extent, head);
        self.check();
        Freed::Done
    }

    /// The end of `free`: the block of this first unit is nobody's, and not pinned.
    pub fn finish_free(&self, mut state: Locked<'_>, extent: Extent, head: &Unit) {
        if head.has(Flags::ALTERED) {
            state.space.end_block(extent, Column::Purging);
            self.unmap(state, extent);
            return;
        }
        head.lower(Flags::SHRUNK);
        state.space.end_block(extent, Column::Cached);
        state.space.give(extent, Free::Cached);
        let cap = state
            .space
            .geometry
            .pages(Bytes::new(GOVERNOR_START_CACHED_BYTES));
        let excess = state.space.ledger.cached().saturating_sub(cap);
        if excess == Pages::NONE || state.governed {
            return;
        }
        self.heavy.store(true, Relaxed);
        if state.ungovernable {
            drop(state);
            self.purge_cached(excess);
        }
    }
}
