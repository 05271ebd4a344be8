//! Resizes large blocks: shrinks or grows in place, or moves the pages; copies bytes only as a last
//! resort.
//!
//! Invariant: the block is `Busy` while its pages move, and it stays intact if the resize fails.
//! Attributes that the program set remain on the block and do not reach other blocks.

use crate::core::geometry::{Contents, Need};
use crate::core::page_ledger::{Allocation, Column};
use crate::core::unit::{Extent, Flags, FreeKind, Kind, UNIT_BYTES};
use crate::ops::attributes::Probe;
use crate::os::vm::{MoveOutcome, Vm};
use crate::state::recycler::{Locked, Recycler, State};
use crate::state::stats::Fallback;

/// The most free neighbours that a block takes to grow in place.
const MAX_NEIGHBOURS: usize = 16;

/// The result of `realloc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realloc {
    /// The pointer is not a block of the recycler.
    NotOurs,
    /// The address of the resized block.
    Done(usize),
    /// No memory (ENOMEM). The old block is unchanged.
    Failed,
    /// The recycler does not serve the new size, or is given up after a fork: the caller allocates, copies and frees the
    /// old block.
    MoveToBackend,
}

/// Where a block's pages are after an attempt to move them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockMove {
    /// At the target, with the attributes that the program set.
    Moved,
    /// At the target. Copied units have default attributes.
    PartlyCopied,
    /// Back at the source; a part of the target was lost.
    NotMoved,
}

impl<V: Vm> Recycler<V> {
    /// Resizes the live block that `find` returned.
    pub fn resize(&self, extent: Extent, bytes: usize) -> Realloc {
        if !self.is_own() && !self.adopt_after_fork() {
            return Realloc::MoveToBackend;
        }
        let Some(need) = self.geometry().need(bytes) else {
            return Realloc::Failed;
        };
        let probe = self.probe_before_resize(extent, need);
        let resized = if need.units < extent.len {
            self.shrink(extent, need, probe);
            Some(extent.start())
        } else if self.restore_growth(extent, need) {
            self.grow_in_place(extent, need)
                .or_else(|| self.relocate(extent, need, probe))
                .or_else(|| self.copy_out(extent, bytes))
        } else {
            self.copy_out(extent, bytes)
        };
        if self.vm.is_limited() {
            self.keep_room();
        }
        self.check();
        resized.map_or(Realloc::Failed, Realloc::Done)
    }

    /// Locks the state while no thread purges the block's tail. Such a purge is one system call. A
    /// thread of a lower priority may be in it, so this thread sleeps after some yields.
    pub fn lock_unpinned(&self, extent: Extent) -> Locked<'_> {
        let mut waits = 0;
        loop {
            let state = self.lock();
            if !state.space.unit(extent.head).has(Flags::PINNED) {
                return state;
            }
            drop(state);
            self.wait_for_thread(waits);
            waits = waits.saturating_add(1);
        }
    }

    /// Probes a block that shrinks or changes its units. An unproven block that shrinks gets
    /// `SHRUNK`, because attributes may remain behind its new end.
    fn probe_before_resize(&self, extent: Extent, need: Need) -> Probe {
        let head = self.pagemap.unit(extent.head);
        if need.units == extent.len && need.pages >= head.pages() {
            return Probe::Pristine;
        }
        if self.units_without_proof(extent).len == 0 {
            return Probe::Pristine;
        }
        if need.pages < head.pages() {
            head.add_flags(Flags::SHRUNK);
        }
        Probe::Unproven
    }

    /// Restores attributes behind the end of a block that shrank before and now grows. False: the
    /// system refuses.
    fn restore_growth(&self, extent: Extent, need: Need) -> bool {
        let head = self.pagemap.unit(extent.head);
        !head.has(Flags::SHRUNK) || need.pages <= head.pages() || self.restore_tail(extent)
    }

    /// Cuts at least one unit off a block.
    fn shrink(&self, extent: Extent, need: Need, probe: Probe) {
        // An attribute that no reset removes may cover exactly the cut units, where no probe
        // detects it. A probe of the whole block does. The kept units are not reset: they are the
        // program's.
        let is_altered = self.pagemap.unit(extent.head).has(Flags::ALTERED);
        let is_whole = probe == Probe::Pristine || !is_altered && self.are_whole_vmas(extent);
        let mut state = self.lock_unpinned(extent);
        let born_ms = state.space.unit(extent.head).stamp();
        let pages = state.space.mark_busy(extent, Column::Moving);
        let (keep, cut) = state.space.split(extent, need.units);
        let got = state.space.mark_live_resized(keep, need, born_ms);
        let freed = pages - got.recycled_pages;
        drop(state);
        let is_restored = is_whole && self.restore_cut_units(cut, probe);
        let mut state = self.lock();
        if is_restored {
            if probe == Probe::Unproven {
                state.space.pagemap.add_boundaries(cut, Flags::VMA_BOUNDARY);
            }
            state.insert_cached(cut, freed);
        } else {
            // The kept units may have the same attribute.
            state.space.unit(keep.head).add_flags(Flags::ALTERED);
            state.counters.count_fallback(Fallback::AttributesAltered);
            let ledger = &mut state.space.ledger;
            ledger.transfer(Column::Moving, Column::Purging, freed);
            self.unmap(state, cut);
        }
    }

    /// Resizes a block within its units, or enlarges it by its free neighbours. None: they are too
    /// short, or a part of them was lost; the block is unchanged.
    fn grow_in_place(&self, extent: Extent, need: Need) -> Option<usize> {
        let mut state = self.lock_unpinned(extent);
        if need.units > extent.len && !state.has_free_neighbours(extent, need) {
            return None;
        }
        let added = state.take_neighbours(extent, need);
        if added.len > 0 {
            drop(state);
            if !self.ensure_default_attributes(added) {
                self.abandon_lost_target(added);
                return None;
            }
            // Another thread may have begun to purge the tail while the lock was free.
            state = self.lock_unpinned(extent);
        }
        let unpopulated = state.unpopulated_end(added);
        let got = state.join(extent, added, need);
        self.check_governor_threshold(&state);
        drop(state);
        self.advise_huge_pages(unpopulated, need, Contents::Any);
        self.prepare_for_touch(got);
        Some(extent.start())
    }

    /// Moves the block to a longer extent. None: the block is unchanged. The attributes of an
    /// unproven block move with the pages and also stay at the source, which is remapped.
    fn relocate(&self, extent: Extent, need: Need, probe: Probe) -> Option<usize> {
        let target = self.prepare_target(extent, need)?;
        // Another thread may have begun to purge the tail while the lock was free.
        let mut state = self.lock_unpinned(extent);
        let old_need = state.space.need_of(extent);
        let born_ms = state.space.unit(extent.head).stamp();
        let pages = state.space.mark_busy(extent, Column::Moving);
        state.space.split_to_busy_units(extent);
        state.space.split_to_busy_units(target);
        drop(state);
        let outcome = self.move_block(extent, target.prefix(extent.len));
        if outcome == BlockMove::NotMoved {
            let mut state = self.lock();
            state.space.mark_live_resized(extent, old_need, born_ms);
            state.lost_targets += 1;
            state.counters.count_fallback(Fallback::TargetLost);
            self.abandon_target(&mut state, target);
            return None;
        }
        if probe == Probe::Unproven {
            self.remap_or_give_up(extent);
        }
        let mut state = self.lock();
        state.space.ledger.totals.moved += pages;
        state.vma_count.record_splits();
        state.transfer_units(extent, target.head);
        if probe == Probe::Unproven {
            state.record_remapped(extent);
            if outcome == BlockMove::PartlyCopied {
                // The remaining attributes may end at a VMA boundary, where no probe detects them.
                state.space.unit(target.head).add_flags(Flags::ALTERED);
            }
        }
        state.free_addresses(extent);
        let unpopulated = state.unpopulated_end(target);
        let got = state.space.mark_live_resized(target, need, born_ms);
        state.space.ledger.totals.count_allocation(got, pages);
        self.check_governor_threshold(&state);
        drop(state);
        self.advise_huge_pages(unpopulated, need, Contents::Any);
        self.prepare_for_touch(got);
        Some(target.start())
    }

    /// A `Busy` extent for the enlarged block, whose added units are ready for use. It is complete
    /// before the block moves, because a lost target then costs nothing.
    fn prepare_target(&self, extent: Extent, need: Need) -> Option<Extent> {
        let (state, target) = self.reserve_extent(self.lock(), need.units)?;
        drop(self.fill(state, target, extent.len)?);
        if !self.ensure_default_attributes(target.suffix_from(extent.len)) {
            self.abandon_lost_target(target);
            return None;
        }
        Some(target)
    }

    /// Moves a block's pages, and copies units that the system refuses to move. Marks units `Gone`
    /// that another thread may have mapped.
    fn move_block(&self, from: Extent, to: Extent) -> BlockMove {
        match self.move_extent(from, to) {
            MoveOutcome::Done | MoveOutcome::DoneSourceGone => BlockMove::Moved,
            MoveOutcome::TargetLost => BlockMove::NotMoved,
            MoveOutcome::Refused => {
                self.count_fallback(Fallback::MovedByUnit);
                self.move_or_copy_units(from, to)
            }
        }
    }

    #[cold]
    fn move_or_copy_units(&self, from: Extent, to: Extent) -> BlockMove {
        let mut outcome = BlockMove::Moved;
        // A source that the kernel does not map again shows that it refuses mappings. A lost target
        // would then need a source that is gone, so all further units are copied.
        let mut may_move = true;
        for (index, (source, target)) in from.extents().zip(to.extents()).enumerate() {
            let moved = if may_move {
                self.move_extent(source, target)
            } else {
                MoveOutcome::Refused
            };
            match moved {
                MoveOutcome::Done => {}
                MoveOutcome::DoneSourceGone => may_move = false,
                MoveOutcome::Refused => {
                    // SAFETY: both units are mapped, `Busy` and owned by this thread.
                    unsafe { self.vm.copy(source.start(), target.start(), UNIT_BYTES) };
                    outcome = BlockMove::PartlyCopied;
                    self.count_fallback(Fallback::MoveRefused);
                }
                MoveOutcome::TargetLost => {
                    self.copy_back(from.prefix(index as u32), to);
                    return BlockMove::NotMoved;
                }
            }
        }
        if outcome == BlockMove::PartlyCopied {
            // Not earlier: until all units are at the target, the source may be needed again.
            let is_ours = |unit: &Extent| self.pagemap.unit(unit.head).kind() != Kind::Gone;
            for unit in from.extents().filter(is_ours) {
                self.drop_pages(unit);
            }
        }
        outcome
    }

    /// Copies the units of `from`, which are all mapped, back from the start of `to`.
    fn copy_back(&self, from: Extent, to: Extent) {
        for (source, target) in from.extents().zip(to.extents()) {
            debug_assert_eq!(self.pagemap.unit(source.head).kind(), Kind::Busy);
            // SAFETY: both units are mapped, `Busy` and owned by this thread.
            unsafe { self.vm.copy(target.start(), source.start(), UNIT_BYTES) };
            // The program's attributes moved with the pages.
            self.remap_or_give_up(target);
        }
    }

    /// The last resort: a new block and a copy.
    fn copy_out(&self, extent: Extent, bytes: usize) -> Option<usize> {
        let copy = self.alloc_block(bytes, Contents::Any)?;
        let start = extent.start();
        let both = self.size_at(start)?.min(bytes);
        // SAFETY: the program passed the old block to `realloc`. The new block is live, and no
        // other thread has its address yet.
        unsafe { self.vm.copy(start, copy, both) };
        self.free_block(extent);
        self.count_fallback(Fallback::ReallocCopied);
        Some(copy)
    }
}

impl State {
    /// The free neighbours make the block long enough.
    fn has_free_neighbours(&self, extent: Extent, need: Need) -> bool {
        let mut end = extent.end();
        for _ in 0..MAX_NEIGHBOURS {
            let Some((next, _)) = self.free_extent_at(end) else {
                return false;
            };
            end = next.end();
            if end - extent.head >= need.units {
                return true;
            }
        }
        false
    }

    fn free_extent_at(&self, head: u32) -> Option<(Extent, FreeKind)> {
        let at = |free: FreeKind| {
            let extent = self.space.extent_at(head, free.kind())?;
            let is_usable = free == FreeKind::Cached || !self.space.is_altered(extent);
            is_usable.then_some((extent, free))
        };
        at(FreeKind::Cached).or_else(|| at(FreeKind::Empty))
    }

    /// Takes free neighbours until the block has room for its need. They are `Busy` and adjacent.
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

    /// Joins the neighbours to the block.
    fn join(&mut self, extent: Extent, added: Extent, need: Need) -> Allocation {
        let born_ms = self.space.unit(extent.head).stamp();
        let own = self.space.mark_busy(extent, Column::Moving);
        let pages = own + self.space.populated(added);
        let grown = Extent::new(extent.head, extent.len + added.len);
        let got = self.space.mark_live_resized(grown, need, born_ms);
        debug_assert_eq!(got.recycled_pages, pages);
        self.space.ledger.totals.count_allocation(got, own);
        got
    }
}
