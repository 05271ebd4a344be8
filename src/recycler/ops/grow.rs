//! Growing a block over its free neighbours.

use crate::core::extent::Extent;
use crate::core::geometry::{Contents, Need};
use crate::core::page_ledger::Column;
use crate::core::unit::FreeKind;
use crate::os::vm::Vm;
use crate::state::recycler::{Recycler, State};

/// Free neighbours taken to grow in place.
const NEIGHBOURS: usize = 16;

impl<M: Vm> Recycler<M> {
    /// Enlarges a block over its free neighbours. None: they are too short, or a part of them was lost, and the block is
    /// as it was.
    pub fn grow_in_place(&self, extent: Extent, need: Need) -> Option<usize> {
        let mut state = self.lock_unpinned(extent);
        if need.units > extent.len && !state.has_room(extent, need) {
            return None;
        }
        let added = state.take_neighbours(extent, need);
        if added.len > 0 {
            drop(state);
            if !self.ensure_default_attributes(added) {
                self.abandon_lost(added);
                return None;
            }
            // The lock was free meanwhile: somebody may be returning the block's slack.
            state = self.lock_unpinned(extent);
        }
        let fresh = state.fresh_part(added);
        state.join(extent, added, need);
        self.check_governor_threshold(&state);
        drop(state);
        self.ask_for_huge(fresh, need, Contents::Any);
        self.purge_excess();
        Some(extent.start())
    }
}

impl State {
    /// Free neighbours make the extent long enough.
    pub fn has_room(&self, extent: Extent, need: Need) -> bool {
        let mut end = extent.end();
        for _ in 0..NEIGHBOURS {
            let Some(next) = self.free_extent_at(end) else {
                return false;
            };
            end = next.0.end();
            if end - extent.head >= need.units {
                return true;
            }
        }
        false
    }

    fn free_extent_at(&self, head: u32) -> Option<(Extent, FreeKind)> {
        let at = |free: FreeKind| {
            let extent = self.space.extent_at(head, free.kind())?;
            let usable = free == FreeKind::Cached || !self.space.is_altered(extent);
            usable.then_some((extent, free))
        };
        at(FreeKind::Cached).or_else(|| at(FreeKind::Empty))
    }

    /// Takes free neighbours, so that the block has room for its need: they are `Busy`, and right behind it.
    fn take_neighbours(&mut self, extent: Extent, need: Need) -> Extent {
        let wanted = extent.head + need.units;
        let mut end = extent.end();
        while end < wanted {
            let Some((next, free)) = self.free_extent_at(end) else {
                break;
            };
            let part = next.prefix(next.len.min(wanted - end));
            self.space.take_part(next, part, free);
            if free == FreeKind::Cached {
                self.remove_from_column(part, Column::Moving);
            }
            end = part.end();
        }
        Extent::between(extent.end(), end)
    }

    /// Makes what was taken a part of the block.
    fn join(&mut self, extent: Extent, added: Extent, need: Need) {
        let born_ms = self.space.unit(extent.head).stamp();
        let own = self.space.mark_busy(extent, Column::Moving);
        let pages = own + self.space.populated(added);
        let grown = extent.prefix(extent.len + added.len);
        let got = self.space.mark_live_resized(grown, need, born_ms);
        debug_assert_eq!(got.recycled_pages, pages);
        self.counters.count_allocation(got, own);
    }
}
