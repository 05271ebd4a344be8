//! Moves pages between extents for gather and realloc, and frees what a move leaves behind.
//!
//! Invariant: source and target are `Busy` and owned by the calling thread. It marks units `Gone`
//! without the lock, and records them under the lock.

use crate::core::geometry::Pages;
use crate::core::page_ledger::Column;
use crate::core::pagemap::Unit;
use crate::core::unit::{Extent, Flags, FreeKind, Kind};
use crate::os::vm::{MoveOutcome, RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler, State};
use crate::state::stats::Fallback;

impl<V: Vm> Recycler<V> {
    /// Marks the extent `Gone` that another thread may map afterwards.
    pub fn move_extent(&self, from: Extent, to: Extent) -> MoveOutcome {
        let bytes = from.bytes();
        // SAFETY: both extents are `Busy` and owned by this thread. They do not overlap, and the
        // target has no pages.
        let outcome = unsafe { self.vm.move_pages(from.start(), to.start(), bytes) };
        match outcome {
            MoveOutcome::Done | MoveOutcome::Refused => {}
            MoveOutcome::DoneSourceGone => self.mark_gone(from),
            MoveOutcome::TargetLost => self.mark_gone(to),
        }
        outcome
    }

    pub fn mark_gone(&self, extent: Extent) {
        self.pagemap.set_kind_of_each(extent, Kind::Gone);
    }

    pub fn count_fallback(&self, why: Fallback) {
        self.state.lock().counters.count_fallback(why);
    }

    /// Drops the pages of an extent. If the system refuses, remaps the extent, or gives it up.
    pub fn drop_pages(&self, extent: Extent) {
        // SAFETY: the extent is `Busy`, owned by this thread, and its contents are not needed.
        if !unsafe { self.vm.discard(extent.start(), extent.bytes()) } {
            self.remap_or_give_up(extent);
        }
    }

    /// Remaps the `Busy` units of an extent, and gives up those that the system refuses to remap.
    pub fn remap_or_give_up(&self, extent: Extent) {
        let is_busy = |unit: &Extent| self.pagemap.unit(unit.head).kind() == Kind::Busy;
        if extent.extents().all(|unit| is_busy(&unit))
            && self.remap(extent) != RemapOutcome::Refused
        {
            return;
        }
        for unit in extent.extents().filter(is_busy) {
            if self.remap(unit) == RemapOutcome::Refused {
                self.give_up(unit);
            }
        }
    }

    /// Remaps an extent, and marks it `Gone` if it is lost.
    fn remap(&self, extent: Extent) -> RemapOutcome {
        // SAFETY: the extent is `Busy`, owned by this thread, and its contents are not needed.
        let outcome = unsafe { self.vm.remap_fresh(extent.start(), extent.bytes()) };
        if outcome == RemapOutcome::Lost {
            self.mark_gone(extent);
        }
        outcome
    }

    fn give_up(&self, extent: Extent) {
        self.mark_gone(extent);
        // SAFETY: the extent was `Busy` and owned by this thread; no thread accesses a `Gone`
        // extent.
        if !unsafe { self.vm.unmap(extent.start(), extent.bytes()) } {
            self.pagemap.set_kind_of_each(extent, Kind::Stuck);
            self.count_fallback(Fallback::Stuck);
        }
    }

    /// Frees the remaining units of a target that lost a unit. It contains no data of the program yet.
    #[cold]
    pub fn abandon_lost_target(&self, target: Extent) {
        let mut state = self.lock();
        state.counters.count_fallback(Fallback::TargetLost);
        self.abandon_target(&mut state, target);
    }

    /// Frees a target with the pages that were gathered so far.
    pub fn abandon_target(&self, state: &mut Locked<'_>, target: Extent) {
        state.space.split_to_busy_units(target);
        let kind = |unit: &Extent| self.pagemap.unit(unit.head).kind();
        for unit in target.extents().filter(|unit| kind(unit) == Kind::Gone) {
            state.space.forget(unit);
        }
        for unit in target.extents().filter(|unit| kind(unit) == Kind::Busy) {
            match state.space.populated(unit) {
                Pages::NONE => state.space.insert_free(unit, FreeKind::Empty),
                pages => state.insert_cached(unit, pages),
            }
        }
    }
}

impl State {
    /// Copies pages and flags of the units of `from` to those at `to`, after their pages moved.
    pub fn transfer_units(&mut self, from: Extent, to: u32) {
        for (source, target) in from.units().zip(to..) {
            let (source, target) = (self.space.unit(source), self.space.unit(target));
            target.set_populated(source.populated());
            target.set_flags(source.flags().without(Flags::PINNED.with(Flags::FREED)));
        }
        if from.len > 0 {
            let target = Extent::new(to, from.len);
            let pagemap = self.space.pagemap;
            pagemap.add_boundaries(target, Flags::VMA_BOUNDARY);
        }
    }

    /// Records that the source of a move was remapped.
    pub fn record_remapped(&mut self, extent: Extent) {
        let pagemap = self.space.pagemap;
        for unit in pagemap.units(extent) {
            unit.set_flags(Flags::NONE);
        }
        pagemap.add_boundaries(extent, Flags::VMA_BOUNDARY);
    }

    /// Caches an extent whose pages are recorded as moving.
    pub fn insert_cached(&mut self, extent: Extent, pages: Pages) {
        let ledger = &mut self.space.ledger;
        ledger.transfer(Column::Moving, Column::Cached, pages);
        self.space.insert_free(extent, FreeKind::Cached);
    }

    /// Frees an extent that has no pages any more.
    pub fn insert_empty(&mut self, extent: Extent) {
        if extent.len == 0 {
            return;
        }
        for unit in self.space.pagemap.units(extent) {
            unit.set_populated(Pages::NONE);
        }
        self.space.insert_free(extent, FreeKind::Empty);
    }

    /// Frees the addresses whose pages moved away or were dropped; forgets `Gone` units.
    pub fn free_addresses(&mut self, extent: Extent) {
        let is_mapped = |unit: &Unit| !matches!(unit.kind(), Kind::Gone | Kind::Stuck);
        if self.space.pagemap.units(extent).all(is_mapped) {
            return self.insert_empty(extent);
        }
        for unit in extent.extents() {
            match self.space.unit(unit.head).kind() {
                Kind::Gone => self.space.forget(unit),
                Kind::Stuck => {}
                _ => self.insert_empty(unit),
            }
        }
    }
}
