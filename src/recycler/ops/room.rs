//! Keeps the free extents within their share of the room that a limit of the system leaves
//! (`policy::room`).
//!
//! Invariant: an extent is taken out of its pool under the lock, and unmapped without it.

use crate::core::page_ledger::Column;
use crate::core::unit::{Extent, FreeKind};
use crate::os::vm::Vm;
use crate::state::recycler::{Recycler, State};

impl<V: Vm> Recycler<V> {
    /// Called under a limit, after an operation that may have left more free extents.
    #[cold]
    pub fn keep_room(&self) {
        let state = self.lock();
        if !state.room.is_due(state.free_units(), state.space.now_ms) {
            return;
        }
        drop(state);
        let left_bytes = self.vm.left_bytes();
        let mut state = self.lock();
        let (mut free_units, now_ms) = (state.free_units(), state.space.now_ms);
        state.room.record(left_bytes, free_units, now_ms);
        while let Some(extent) = state.take_excess() {
            state = self.unmap(state, extent);
            // Where the system refuses to unmap, the extent stays free.
            if state.free_units() >= free_units {
                return;
            }
            free_units = state.free_units();
        }
    }
}

impl State {
    /// The units of all free extents that are mapped.
    pub fn free_units(&self) -> u64 {
        self.space.cached.units() + self.space.empty.units()
    }

    /// Takes free units beyond the share, those without pages first.
    fn take_excess(&mut self) -> Option<Extent> {
        let excess = self.room.excess(self.free_units());
        let space = &mut self.space;
        let (free, head) = match space.empty.oldest() {
            Some(head) => (FreeKind::Empty, head),
            None => (FreeKind::Cached, space.cached.oldest()?),
        };
        let whole = Extent::new(head, space.unit(head).len());
        let part = whole.prefix(excess.min(whole.len.into()) as u32);
        if part.len == 0 {
            return None;
        }
        let part = space.take_part(whole, part, free);
        if free == FreeKind::Cached {
            self.remove_from_column(part, Column::Purging);
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::world::{World, MIB};

    fn world_with_limit(units: usize) -> World {
        let world = World::new();
        world.vm().units_allowed.set(Some(units));
        world
    }

    #[test]
    fn under_a_limit_a_freed_block_keeps_a_sixteenth_of_the_room() {
        let mut world = world_with_limit(160);
        assert!(world.alloc(200 * MIB, false));
        let block = world.take(0).expect("it was just allocated");
        world.free(block);
        assert_eq!(world.vm().mapped_units(), 10);
        world.audit_exactly();
    }

    #[test]
    fn under_a_limit_that_is_reached_nothing_stays_free() {
        let mut world = world_with_limit(20);
        for _ in 0..2 {
            assert!(world.alloc(20 * MIB, false));
        }
        let block = world.take(0).expect("it was just allocated");
        world.free(block);
        assert_eq!(
            world.vm().mapped_units(),
            10,
            "only the live block is mapped"
        );
        world.audit_exactly();
    }

    #[test]
    fn extents_that_the_system_does_not_unmap_stay_free() {
        let mut world = world_with_limit(20);
        assert!(world.alloc(20 * MIB, false));
        let block = world.take(0).expect("it was just allocated");
        world.vm().refusals.bits.set(u64::MAX);
        world.free_at(block.start);
        world.vm().refusals.bits.set(0);
        world.finish();
    }
}
