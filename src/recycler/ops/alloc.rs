//! Allocates a block: from a cached extent that fits, from pages gathered out of smaller ones, or
//! from fresh pages.
//!
//! Invariant: a block has default attributes and stays `Busy` until it is complete. Changes the
//! state only under the lock, and holds the lock across no system call.

use crate::core::geometry::{Contents, Need, Pages};
use crate::core::page_ledger::{Allocation, Column};
use crate::core::unit::{address, Extent, Flags, FreeKind, Kind};
use crate::os::vm::{RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler, State};

/// Blocks of this many units request huge pages even if their last unit is not full: at most one
/// unit of them has none.
const MIN_HUGE_UNITS: u32 = 16;
/// A free extent up to this length is remapped if it consists of several VMAs. In a longer one the
/// boundaries matter little, and the system may refuse one mapping of that length.
const MAX_MERGED_UNITS: u32 = 16;

impl<V: Vm> Recycler<V> {
    /// Allocates a 2 MiB-aligned block. None: the system provides no memory.
    pub fn alloc_block(&self, bytes: usize, contents: Contents) -> Option<usize> {
        let need = self.geometry().need(bytes)?;
        if !self.is_own() && !self.adopt_after_fork() {
            return None;
        }
        let allocated = self.allocate(need, contents);
        self.check();
        let (extent, got) = allocated?;
        self.prepare_for_touch(got);
        if self.vm.is_limited() {
            self.keep_room();
        }
        let start = extent.start();
        if got.recycled_pages == Pages::NONE {
            // The parts into which a program's `madvise` splits a VMA become one again only if the
            // VMA had a page. NumPy gives advice on each new array.
            // SAFETY: the block is live, so it is mapped, and no other thread has its address yet.
            unsafe { self.vm.fault_in(start) };
        }
        if contents == Contents::Zeroed && got.recycled_pages > Pages::NONE {
            // SAFETY: the block is live, so it is mapped, and no other thread has its address yet.
            unsafe { self.vm.zero(start, self.geometry().size(need.pages)) };
        }
        Some(start)
    }

    /// Called before the program touches a block.
    #[inline]
    pub fn prepare_for_touch(&self, got: Allocation) {
        if got.fresh_pages > Pages::NONE {
            self.make_room_for(got.fresh_pages);
        }
    }

    fn allocate(&self, need: Need, contents: Contents) -> Option<(Extent, Allocation)> {
        let mut state = self.lock();
        if let Some(extent) = state.space.take_best_fit(need.units, FreeKind::Cached) {
            let got = state.space.mark_live(extent, need, Column::Cached);
            state.space.ledger.totals.count_allocation(got, Pages::NONE);
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
            let (state, target, filled) = self.reserve_target(state, need.units)?;
            (self.fill(state, target, filled)?, target)
        };
        let unpopulated = state.unpopulated_end(target);
        drop(state);
        if !self.ensure_default_attributes(unpopulated) {
            self.abandon_lost_target(target);
            return None;
        }
        self.advise_huge_pages(unpopulated, need, contents);
        let mut state = self.lock();
        let got = state.space.mark_live(target, need, Column::Moving);
        state.space.ledger.totals.count_allocation(got, Pages::NONE);
        state.space.record_churn(got.fresh_pages, Pages::NONE);
        self.check_governor_threshold(&state);
        Some((target, got))
    }

    /// Requests huge pages for the part of a block's extent that has no pages yet, where the block
    /// will use them.
    pub fn advise_huge_pages(&self, unpopulated: Extent, need: Need, contents: Contents) {
        // Under the policy `madvise` the decision is the program's: docs/design/tuning.md.
        if unpopulated.len == 0 || !self.vm.full_blocks_use_huge_pages() {
            return;
        }
        let is_full = need.last_unit_pages == self.geometry().pages_per_unit();
        // Zeroed memory is often sparse, so the system's policy decides.
        if contents == Contents::Zeroed
            || need.units < 2
            || !(is_full || need.units >= MIN_HUGE_UNITS)
        {
            return;
        }
        let full_units = unpopulated.len - u32::from(!is_full);
        let huge = unpopulated.prefix(full_units);
        if huge.len > 0 {
            // SAFETY: the extent is `Busy` and owned by this thread, or lies in the part of a block
            // that the program does not have yet.
            unsafe { self.vm.advise_huge(huge.start(), huge.bytes()) };
            for id in huge.units() {
                self.pagemap.unit(id).add_flags(Flags::HUGE);
            }
            self.pagemap.add_boundaries(huge, Flags::VMA_BOUNDARY);
        }
    }

    /// Gives default attributes to the units of a `Busy` extent that have no pages. False: another
    /// thread may have mapped some of them; these are marked `Gone`.
    pub fn ensure_default_attributes(&self, extent: Extent) -> bool {
        let is_empty = |id: &u32| self.pagemap.unit(*id).populated() == Pages::NONE;
        let mut is_whole = true;
        let mut units = extent.units().peekable();
        while let Some(head) = units.by_ref().find(is_empty) {
            let mut len = 1;
            while units.next_if(is_empty).is_some() {
                len += 1;
            }
            let empty = Extent::new(head, len);
            if self.remap_if_altered(empty) == RemapOutcome::Lost {
                self.mark_gone(empty);
                is_whole = false;
            }
        }
        is_whole
    }

    /// Remaps units without pages if their attributes may differ from the default, or if a short
    /// extent consists of several VMAs.
    pub fn remap_if_altered(&self, empty: Extent) -> RemapOutcome {
        if self.has_default_attributes(empty) {
            return RemapOutcome::Done;
        }
        // SAFETY: the extent is `Busy`, owned by this thread, and has no pages.
        let outcome = unsafe { self.vm.remap_fresh(empty.start(), empty.bytes()) };
        if outcome == RemapOutcome::Done {
            for id in empty.units() {
                self.pagemap.unit(id).set_flags(Flags::NONE);
            }
            self.record_merges(empty);
        }
        outcome
    }

    fn has_default_attributes(&self, empty: Extent) -> bool {
        let has = |id, flags| self.pagemap.unit(id).has(flags);
        let is_altered = empty
            .units()
            .any(|id| has(id, Flags::HUGE.with(Flags::ALTERED)));
        let has_boundary = empty.units().skip(1).any(|id| has(id, Flags::VMA_BOUNDARY));
        !(is_altered || has_boundary && empty.len <= MAX_MERGED_UNITS)
    }

    /// Records at both ends of a fresh mapping whether the kernel merged it with its neighbour.
    fn record_merges(&self, extent: Extent) {
        let page_bytes = self.geometry().page_bytes();
        for id in [extent.head, extent.end()] {
            let Some(unit) = self.pagemap.find(id) else {
                continue;
            };
            let before = address(id) - page_bytes;
            if self.vm.is_one_vma(before, 2 * page_bytes) {
                unit.remove_flags(Flags::ANY_BOUNDARY);
            } else {
                unit.add_flags(Flags::VMA_BOUNDARY);
            }
        }
    }

    /// A mapped `Busy` extent of `units`, and how many of its first units already hold cached
    /// pages.
    fn reserve_target<'a>(
        &'a self,
        mut state: Locked<'a>,
        units: u32,
    ) -> Option<(Locked<'a>, Extent, u32)> {
        if let Some((extent, filled)) = state.extend_cached(units) {
            return Some((state, extent, filled));
        }
        let (state, extent) = self.reserve_extent(state, units)?;
        Some((state, extent, 0))
    }
}

impl State {
    /// Joins the largest cached extent with the empty one behind it, if they suffice. The cached
    /// pages need not move.
    fn extend_cached(&mut self, units: u32) -> Option<(Extent, u32)> {
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

    /// The units of an extent behind the last one that holds pages.
    pub fn unpopulated_end(&self, extent: Extent) -> Extent {
        let start = extent
            .units()
            .rev()
            .find(|id| self.space.unit(*id).populated() > Pages::NONE)
            .map_or(extent.head, |last| last + 1);
        Extent::between(start, extent.end())
    }
}
