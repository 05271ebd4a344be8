//! Frees a block: caches its pages, or unmaps them if the program altered the mapping.
//!
//! Invariant: a cached extent has default attributes. The attributes are restored before the lock
//! is taken; the program has given up the block, so no other thread uses it.

use crate::core::geometry::{Bytes, Pages};
use crate::core::page_ledger::Column;
use crate::core::pagemap::Unit;
use crate::core::unit::{Extent, Flags, FreeKind};
use crate::ops::attributes::FreedAttributes;
use crate::os::vm::Vm;
use crate::state::recycler::{Governor, Locked, Recycler};
use crate::state::stats::Fallback;
use flarena_shared::defaults::GOVERNOR_START_CACHED_BYTES;
use flarena_sys::{attention, headroom};
use std::sync::atomic::Ordering::Relaxed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeOutcome {
    Done,
    /// Another thread freed the block at the same time.
    DoubleFree,
}

impl<V: Vm> Recycler<V> {
    /// Frees the live block that `find` returned.
    pub fn free_block(&self, extent: Extent) -> FreeOutcome {
        if !self.is_own() && !self.adopt_after_fork() {
            self.free_without_state(extent);
            return FreeOutcome::Done;
        }
        let now_ms = self.vm.now_ms();
        let head = self.pagemap.unit(extent.head);
        let attributes = self.restore_freed_block(extent, head.stamp(), now_ms);
        if attributes == FreedAttributes::Default && attention::may_want(attention::WATCHED) {
            self.offer_if_scarce(extent);
        }
        let mut state = self.lock_at(now_ms);
        if !head.begins_block() || head.has(Flags::FREED) {
            return FreeOutcome::DoubleFree;
        }
        if attributes != FreedAttributes::Default {
            head.add_flags(Flags::ALTERED);
        }
        match attributes {
            FreedAttributes::Fragmented => {
                state.counters.count_fallback(Fallback::MultiVmaUnmapped)
            }
            _ if head.has(Flags::ALTERED) => {
                state.counters.count_fallback(Fallback::AttributesAltered)
            }
            _ => {}
        }
        if head.has(Flags::PINNED) {
            // The thread that purges the tail finishes the free.
            head.add_flags(Flags::FREED);
            return FreeOutcome::Done;
        }
        self.finish_free(state, extent, head);
        if self.vm.is_limited() {
            self.keep_room();
        }
        self.check();
        FreeOutcome::Done
    }

    /// Near a memory limit, a block that exceeds the allowance is offered to the system, which takes its pages before it
    /// kills a process. This also helps against memory that the library does not see.
    #[cold]
    fn offer_if_scarce(&self, extent: Extent) {
        if !headroom::may_keep(self.cached_bytes.load(Relaxed) + extent.bytes() as u64) {
            // SAFETY: the program passed the block to `free`, and no pool holds it yet.
            unsafe { self.vm.offer(extent.start(), extent.bytes()) };
        }
    }

    /// Caches or unmaps a freed block with this first unit, which is not pinned.
    pub fn finish_free(&self, mut state: Locked<'_>, extent: Extent, head: &Unit) {
        if head.has(Flags::ALTERED) {
            state.space.end_block(extent, Column::Purging);
            self.unmap(state, extent);
            return;
        }
        head.remove_flags(Flags::SHRUNK);
        state.space.end_block(extent, Column::Cached);
        state.space.insert_free(extent, FreeKind::Cached);
        let cap = state
            .space
            .geometry
            .pages(Bytes::new(GOVERNOR_START_CACHED_BYTES));
        let cached = state.space.ledger.cached();
        let cached_bytes = state.space.geometry.bytes(cached).count();
        self.cached_bytes.store(cached_bytes, Relaxed);
        let excess = cached.saturating_sub(cap);
        if excess == Pages::NONE || self.governor.load(Relaxed) == Governor::Running {
            return;
        }
        self.want_governor();
        if self.governor.load(Relaxed) == Governor::Unavailable {
            drop(state);
            self.purge_cached(excess);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::world::{World, MIB};
    use flarena_sys::headroom;

    #[test]
    fn near_a_limit_a_freed_block_beyond_the_allowance_is_offered_to_the_system() {
        for (allowance, offered) in [(Some(0), 8 * MIB), (None, 0)] {
            let mut world = World::new();
            assert!(world.alloc(8 * MIB, false));
            let block = world.take(0).expect("it was just allocated");
            headroom::set(allowance);
            world.free(block);
            headroom::set(None);
            assert_eq!(world.vm().offered.get(), offered);
            world.audit_exactly();
        }
    }
}
