//! Moving pages from one extent to another, and what is left behind: gather and realloc share it.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::page_ledger::Column;
use crate::core::unit::{Flags, FreeKind, Kind};
use crate::os::vm::{MoveOutcome, RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler, State};
use crate::state::stats::Fallback;

impl<M: Vm> Recycler<M> {
    pub fn move_extent(&self, from: Extent, to: Extent) -> MoveOutcome {
        let bytes = from.bytes();
        // SAFETY: both are `Busy` in this thread's hands: cached pages that `fill` took, or the block that the program
        // gave to realloc; and a part of the target that was taken for them, without pages.
        unsafe { self.map.move_pages(from.start(), to.start(), bytes) }
    }

    pub fn mark_gone(&self, extent: Extent) {
        self.pagemap.set_kind_of_each(extent, Kind::Gone);
    }

    /// Empties an extent, by the next best means when the system refuses one; marks what is lost.
    pub fn evict(&self, extent: Extent) {
        let (start, bytes) = (extent.start(), extent.bytes());
        // SAFETY: `Busy` in this thread's hands; what was in it was copied, or is nobody's.
        if !unsafe { self.map.discard(start, bytes) } {
            self.renew_or_give_up(extent);
        }
    }

    /// Maps the addresses anew that a marked block left, or was at for a moment; what stays as it was is given up.
    pub fn renew_or_give_up(&self, extent: Extent) {
        let ours = |unit: &Extent| self.pagemap.unit(unit.head).kind() == Kind::Busy;
        if extent.extents().all(|unit| ours(&unit)) && self.renew(extent) != RemapOutcome::Refused {
            return;
        }
        for unit in extent.extents().filter(ours) {
            if self.renew(unit) == RemapOutcome::Refused {
                self.give_up(unit);
            }
        }
    }

    /// Maps an extent anew; marks it when it is lost.
    fn renew(&self, extent: Extent) -> RemapOutcome {
        // SAFETY: `Busy` in this thread's hands; what was in it was moved or copied, or is nobody's.
        let renewal = unsafe { self.map.remap_fresh(extent.start(), extent.bytes()) };
        if renewal == RemapOutcome::Lost {
            self.mark_gone(extent);
        }
        renewal
    }

    fn give_up(&self, extent: Extent) {
        self.mark_gone(extent);
        // SAFETY: in this thread's hands; marked `Gone`, nobody counts on it.
        if !unsafe { self.map.unmap(extent.start(), extent.bytes()) } {
            self.pagemap.set_kind_of_each(extent, Kind::Stuck);
            self.state.lock().counters.count_fallback(Fallback::Stuck);
        }
    }

    /// A part of a target was lost before anything of the program's was in it: frees the rest.
    #[cold]
    pub fn abandon_lost(&self, target: Extent) {
        let mut state = self.lock();
        state.counters.count_fallback(Fallback::TargetLost);
        self.abandon(&mut state, target);
    }

    /// Frees what was gathered so far.
    pub fn abandon(&self, state: &mut Locked<'_>, target: Extent) {
        state.space.split_to_busy_units(target);
        for id in target.units() {
            if self.pagemap.unit(id).kind() == Kind::Gone {
                state.space.forget(Extent::unit(id));
            }
        }
        let ours = |id: &u32| self.pagemap.unit(*id).kind() == Kind::Busy;
        for id in target.units().filter(ours) {
            let extent = Extent::unit(id);
            match state.space.populated(extent) {
                Pages::NONE => state.space.insert_free(extent, FreeKind::Empty),
                pages => state.record_cached(extent, pages),
            }
        }
    }
}

impl State {
    /// Units at `to` take over the pages and flags of those of `from`.
    pub fn inherit(&mut self, from: Extent, to: u32) {
        for (source, target) in from.units().zip(to..) {
            let (source, target) = (self.space.unit(source), self.space.unit(target));
            target.set_populated(source.populated());
            target.set_flags(source.flags().without(Flags::PINNED.with(Flags::FREED)));
        }
        let len = from.len;
        if len > 0 {
            self.space
                .pagemap
                .add_boundaries(Extent::new(to, len), Flags::VMA_BOUNDARY);
        }
    }

    /// Books that a source whose block was marked is mapped anew.
    pub fn record_remapped(&mut self, extent: Extent) {
        for id in extent.units() {
            self.space.unit(id).set_flags(Flags::NONE);
        }
        self.space
            .pagemap
            .add_boundaries(extent, Flags::VMA_BOUNDARY);
    }

    /// Puts an extent whose pages were moving into the cache.
    pub fn record_cached(&mut self, extent: Extent, pages: Pages) {
        self.space
            .ledger
            .transfer(Column::Moving, Column::Cached, pages);
        self.space.insert_free(extent, FreeKind::Cached);
    }

    /// Puts an extent whose pages are gone into the pool of empty ones.
    pub fn empty_out(&mut self, extent: Extent) {
        if extent.len == 0 {
            return;
        }
        for id in extent.units() {
            self.space.unit(id).set_populated(Pages::NONE);
        }
        self.space.insert_free(extent, FreeKind::Empty);
    }

    /// Frees the addresses that moved pages left; `Gone` marks those that are not ours any more.
    pub fn free_addresses(&mut self, extent: Extent) {
        for id in extent.units() {
            let unit = Extent::unit(id);
            match self.space.unit(id).kind() {
                Kind::Gone => self.space.forget(unit),
                Kind::Stuck => {}
                _ => self.empty_out(unit),
            }
        }
    }
}
