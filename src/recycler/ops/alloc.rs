//! A block for a request: from the cache, gathered, or fresh.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::geometry::{Contents, Need};
use crate::core::page_ledger::Column;
use crate::core::unit::{address, Flags, FreeKind, Kind};
use crate::os::vm::{RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler, State};
use crate::state::space::Allocation;

/// Blocks from here on get huge pages even when their last unit is not full: 2 MiB in 32 at most is not
/// covered by them.
const HUGE_UNITS: u32 = 16;
/// In longer ones a seam does not matter, and one mapping of that length may be refused.
const WHOLE_UNITS: u32 = 16;

impl<M: Vm> Recycler<M> {
    /// A block of this size, 2 MiB-aligned; None when the system gives no memory.
    pub fn alloc_block(&self, bytes: usize, contents: Contents) -> Option<usize> {
        let need = self.geometry().need(bytes)?;
        if !self.adopt_after_fork() {
            return None;
        }
        let taken = self.take(need, contents);
        self.check();
        let (extent, got) = taken?;
        if got.fresh_pages > Pages::NONE {
            self.purge_excess();
        }
        let start = extent.start();
        if contents == Contents::Zeroed && got.recycled_pages > Pages::NONE {
            // SAFETY: the block is live, so mapped, and nobody has its address yet.
            unsafe { self.map.zero(start, self.geometry().size(need.pages)) };
        }
        Some(start)
    }

    fn take(&self, need: Need, contents: Contents) -> Option<(Extent, Allocation)> {
        let mut state = self.lock();
        if let Some(extent) = state.space.take_best_fit(need.units, FreeKind::Cached) {
            let got = state.space.mark_live(extent, need, Column::Cached);
            state.counters.count_allocation(got, Pages::NONE);
            if got.fresh_pages > Pages::NONE {
                state.space.record_churn(got.fresh_pages, Pages::NONE);
            }
            self.check_governor_threshold(&state);
            return Some((extent, got));
        }
        let (state, target) = if state.space.tolerance.prefers_fresh(
            &state.space.ledger,
            need.pages,
            state.space.now_ms,
        ) {
            self.reserve_extent(state, need.units)?
        } else {
            let (state, target, filled) = self.target(state, need.units)?;
            (self.fill(state, target, filled, need.units)?, target)
        };
        let fresh = state.fresh_part(target);
        drop(state);
        if !self.ensure_default_attributes(fresh) {
            self.abandon_lost(target);
            return None;
        }
        self.ask_for_huge(fresh, need, contents);
        let mut state = self.lock();
        let got = state.space.mark_live(target, need, Column::Moving);
        state.counters.count_allocation(got, Pages::NONE);
        state.space.record_churn(got.fresh_pages, Pages::NONE);
        self.check_governor_threshold(&state);
        Some((target, got))
    }

    /// The right kind of pages for the part of a block's extent that has none yet.
    pub fn ask_for_huge(&self, fresh: Extent, need: Need, contents: Contents) {
        if fresh.len == 0 {
            return;
        }
        // Where the program must ask for pages of 2 MiB, it may ask for itself: docs/design/tuning.md.
        if !self.map.full_blocks_use_huge_pages() {
            return;
        }
        let full = need.last_unit_pages == self.geometry().pages_per_unit();
        // Cleared memory is often sparse: the system's policy decides there.
        if contents == Contents::Zeroed || need.units < 2 || !(full || need.units >= HUGE_UNITS) {
            return;
        }
        let huge = fresh.prefix(if full { fresh.len } else { fresh.len - 1 });
        if huge.len > 0 {
            // SAFETY: a part of `fresh`, which the caller took: `Busy`, or behind a block that nobody has yet.
            unsafe { self.map.advise_huge(huge.start(), huge.bytes()) };
            for id in huge.units() {
                self.pagemap.unit(id).add_flags(Flags::HUGE);
            }
            self.pagemap.add_boundaries(huge, Flags::VMA_BOUNDARY);
        }
    }

    /// Pristine flags for what has no pages yet of a `Busy` extent. False: a part of it was lost, and is marked `Gone`.
    pub fn ensure_default_attributes(&self, extent: Extent) -> bool {
        let is_empty = |id: &u32| self.pagemap.unit(*id).populated() == Pages::NONE;
        let mut is_whole = true;
        let mut units = extent.units().peekable();
        while let Some(head) = units.by_ref().find(is_empty) {
            let mut empty = Extent::unit(head);
            while units.next_if(is_empty).is_some() {
                empty.len += 1;
            }
            if self.remap_if_altered(empty) == RemapOutcome::Lost {
                self.mark_gone(empty);
                is_whole = false;
            }
        }
        is_whole
    }

    /// Maps units without pages anew whose mapping is not as it was made, or is more than one.
    pub fn remap_if_altered(&self, empty: Extent) -> RemapOutcome {
        if self.has_default_attributes(empty) {
            return RemapOutcome::Done;
        }
        // SAFETY: the caller took it out of the pool of empty extents, or moved its pages away: nothing is in it.
        let renewal = unsafe { self.map.remap_fresh(empty.start(), empty.bytes()) };
        if renewal == RemapOutcome::Done {
            for id in empty.units() {
                self.pagemap.unit(id).set_flags(Flags::NONE);
            }
            self.note_joins(empty);
        }
        renewal
    }

    /// Units without pages have nothing on them, and few of them are one mapping, as far as is known.
    fn has_default_attributes(&self, empty: Extent) -> bool {
        let differs = Flags::HUGE.with(Flags::ALTERED);
        let has = |id, flags| self.pagemap.unit(id).has(flags);
        let has_boundary = empty.units().skip(1).any(|id| has(id, Flags::VMA_BOUNDARY));
        !(empty.units().any(|id| has(id, differs)) || has_boundary && empty.len <= WHOLE_UNITS)
    }

    /// Notes at both ends of a range that was mapped just now whether the kernel joined it to what is there.
    fn note_joins(&self, extent: Extent) {
        let page_bytes = self.geometry().page_bytes();
        for id in [extent.head, extent.end()] {
            let Some(unit) = self.pagemap.find(id) else {
                continue;
            };
            let before = address(id) - page_bytes;
            if self.map.is_one_vma(before, 2 * page_bytes) {
                unit.remove_flags(Flags::ANY_BOUNDARY);
            } else {
                unit.add_flags(Flags::VMA_BOUNDARY);
            }
        }
    }

    /// An address range of `units`, `Busy`, mapped. Its first units may already hold cached pages; the
    /// answer says how many. None: no memory for mappings.
    fn target<'a>(
        &'a self,
        mut state: Locked<'a>,
        units: u32,
    ) -> Option<(Locked<'a>, Extent, u32)> {
        if let Some((extent, filled)) = state.grow_cached(units) {
            return Some((state, extent, filled));
        }
        let (state, extent) = self.reserve_extent(state, units)?;
        Some((state, extent, 0))
    }
}

impl State {
    /// Cached units with enough empty ones right behind them: the pages stay where they are.
    fn grow_cached(&mut self, units: u32) -> Option<(Extent, u32)> {
        let space = &mut self.space;
        let whole = space.cached.largest(space.pagemap)?;
        let len = whole.len;
        let room = space.extent_at(whole.end(), Kind::Empty)?;
        if len >= units || len + room.len < units || space.is_altered(room) {
            return None;
        }
        let pages = space.populated(whole);
        space.take_part(whole, whole, FreeKind::Cached);
        space.take_part(room, room.prefix(units - len), FreeKind::Empty);
        space.ledger.transfer(Column::Cached, Column::Moving, pages);
        let joined = whole.prefix(units);
        space.pagemap.label(joined, Kind::Busy);
        Some((joined, len))
    }

    /// The units of a target behind the last one that holds pages.
    pub fn fresh_part(&self, target: Extent) -> Extent {
        let held = target
            .units()
            .rev()
            .find(|id| self.space.unit(*id).populated() > Pages::NONE)
            .map_or(target.head, |last| last + 1);
        Extent::between(held, target.end())
    }
}
