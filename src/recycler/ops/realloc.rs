//! realloc of large blocks: pages move, bytes do not.

use crate::core::extent::Extent;
use crate::core::geometry::{Contents, Need};
use crate::core::page_ledger::Column;
use crate::core::unit::{Flags, Kind, UNIT_BYTES};
use crate::os::vm::{MoveOutcome, Vm};
use crate::state::recycler::{Locked, Recycler};
use crate::state::stats::Fallback;

/// What became of a block that was to change its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeOutcome {
    NotOurs,
    Done(usize),
    /// No memory; the block is as it was.
    Failed,
    /// Nothing was done: this process has no recycler any more.
    GivenUp,
}

/// Where a block's pages are after an attempt to move them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockMove {
    /// At the target, with whatever the program did to them.
    Whole,
    /// At the target, and of what the program did to them only a part.
    WithoutSomeMarks,
    /// Back at the source: a part of the target was lost.
    NotAtAll,
}

impl<M: Vm> Recycler<M> {
    pub fn resize(&self, start: usize, bytes: usize) -> ResizeOutcome {
        let Some(extent) = self.find(start) else {
            return ResizeOutcome::NotOurs;
        };
        if !self.adopt_after_fork() {
            return ResizeOutcome::GivenUp;
        }
        let Some(need) = self.geometry().need(bytes) else {
            return ResizeOutcome::Failed;
        };
        let fresh = self.note_shrinking(extent, need);
        if need.units < extent.len {
            self.shrink(extent, need, fresh);
            self.check();
            return ResizeOutcome::Done(start);
        }
        if !self.clear_growth(extent, need) {
            let moved = self.copy_out(extent, bytes);
            self.check();
            return moved.map_or(ResizeOutcome::Failed, ResizeOutcome::Done);
        }
        let moved = self
            .grow_in_place(extent, need)
            .or_else(|| self.relocate(extent, need, fresh))
            .or_else(|| self.copy_out(extent, bytes));
        self.check();
        match moved {
            Some(moved) => ResizeOutcome::Done(moved),
            None => ResizeOutcome::Failed,
        }
    }

    /// Waits until nobody returns the block's slack; that takes a system call.
    pub fn lock_unpinned(&self, extent: Extent) -> Locked<'_> {
        loop {
            let state = self.lock();
            if !state.space.unit(extent.head).has(Flags::PINNED) {
                return state;
            }
            drop(state);
            self.map.yield_now();
        }
    }

    /// True: the block's mapping is as it was made. A block that is to be shorter remembers when it may not be:
    /// marks would lie behind its end.
    fn note_shrinking(&self, extent: Extent, need: Need) -> bool {
        let head = self.pagemap.unit(extent.head);
        if need.units == extent.len && need.pages >= head.pages() {
            return true;
        }
        let fresh = self.units_without_proof(extent).len == 0;
        if !fresh && need.pages < head.pages() {
            head.add_flags(Flags::SHRUNK);
        }
        fresh
    }

    /// Takes marks off where the block is to grow. False: they lie there for good.
    fn clear_growth(&self, extent: Extent, need: Need) -> bool {
        let head = self.pagemap.unit(extent.head);
        !head.has(Flags::SHRUNK) || need.pages <= head.pages() || self.restore_tail(extent)
    }

    fn shrink(&self, extent: Extent, need: Need, fresh: bool) {
        // What cannot be taken off may cover the rest all over: only the whole block shows where it begins. Nothing is
        // undone here: what is kept is the program's.
        let is_altered = self.pagemap.unit(extent.head).has(Flags::ALTERED);
        let is_whole = fresh || !is_altered && self.are_whole_mappings(extent);
        let mut state = self.lock_unpinned(extent);
        let born_ms = state.space.unit(extent.head).stamp();
        let pages = state.space.mark_busy(extent, Column::Moving);
        let (keep, rest) = state.space.split(extent, need.units);
        let got = state.space.mark_live_resized(keep, need, born_ms);
        let freed = pages - got.recycled_pages;
        if rest.len == 0 {
            return;
        }
        drop(state);
        let clean = is_whole && self.restore_attributes(rest, fresh);
        let mut state = self.lock();
        if clean {
            if !fresh {
                state
                    .space
                    .pagemap
                    .add_boundaries(rest, Flags::VMA_BOUNDARY);
            }
            state.record_cached(rest, freed);
        } else {
            // Whatever it was, the rest of the block may have it too.
            state.space.unit(keep.head).add_flags(Flags::ALTERED);
            state.counters.count_fallback(Fallback::AttributesAltered);
            let ledger = &mut state.space.ledger;
            ledger.transfer(Column::Moving, Column::Purging, freed);
            self.unmap(state, rest);
        }
    }

    /// Moves the block to a longer range. None: nothing changed. Unless it is `fresh` its marks move with it, and
    /// stay behind as well.
    fn relocate(&self, extent: Extent, need: Need, fresh: bool) -> Option<usize> {
        let (state, target) = self.reserve_extent(self.lock(), need.units)?;
        // First what is cached or new, while a lost target costs nothing.
        drop(self.fill(state, target, extent.len, need.units)?);
        let own = target.prefix(extent.len);
        let added = target.suffix_from(own.len);
        if !self.ensure_default_attributes(added) {
            self.abandon_lost(target);
            return None;
        }
        // The lock was free meanwhile: somebody may be returning the block's slack again.
        let mut state = self.lock_unpinned(extent);
        let old = state.space.need_of(extent);
        let born_ms = state.space.unit(extent.head).stamp();
        let pages = state.space.mark_busy(extent, Column::Moving);
        state.space.split_to_busy_units(extent);
        state.space.split_to_busy_units(target);
        drop(state);
        let moved = self.move_block(extent, own);
        if moved != BlockMove::NotAtAll && !fresh {
            self.renew_or_give_up(extent);
        }
        let mut state = self.lock();
        if moved == BlockMove::NotAtAll {
            state.space.mark_live(extent, old, Column::Moving);
            state.lost_targets += 1;
            state.counters.count_fallback(Fallback::TargetLost);
            self.abandon(&mut state, target);
            return None;
        }
        state.counters.moved += pages;
        state.vma_count.record_move();
        state.inherit(extent, target.head);
        if !fresh {
            state.record_remapped(extent);
            if moved == BlockMove::WithoutSomeMarks {
                // Those that are left may end where a mapping ends anyhow, and nothing would tell.
                state.space.unit(target.head).add_flags(Flags::ALTERED);
            }
        }
        state.free_addresses(extent);
        let fresh = state.fresh_part(target);
        let got = state.space.mark_live_resized(target, need, born_ms);
        state.counters.count_allocation(got, pages);
        self.check_governor_threshold(&state);
        drop(state);
        self.ask_for_huge(fresh, need, Contents::Any);
        self.purge_excess();
        Some(target.start())
    }

    /// Moves a block's pages; units that cannot move are copied. Units that are no longer ours are marked
    /// `Gone`.
    fn move_block(&self, from: Extent, to: Extent) -> BlockMove {
        match self.move_extent(from, to) {
            MoveOutcome::Done => return BlockMove::Whole,
            MoveOutcome::DoneSourceGone => {
                self.mark_gone(from);
                return BlockMove::Whole;
            }
            MoveOutcome::TargetLost => {
                self.mark_gone(to);
                return BlockMove::NotAtAll;
            }
            MoveOutcome::Refused => {}
        }
        self.state
            .lock()
            .counters
            .count_fallback(Fallback::MovedByUnit);
        self.move_units(from, to)
    }

    fn move_units(&self, from: Extent, to: Extent) -> BlockMove {
        let mut copied = false;
        for (index, (source, target)) in from.extents().zip(to.extents()).enumerate() {
            match self.move_extent(source, target) {
                MoveOutcome::Done => {}
                MoveOutcome::DoneSourceGone => self.mark_gone(source),
                MoveOutcome::Refused => {
                    // SAFETY: the source is a unit of the block that the program gave to realloc, the target `Busy`.
                    unsafe { self.map.copy(source.start(), target.start(), UNIT_BYTES) };
                    copied = true;
                    self.state
                        .lock()
                        .counters
                        .count_fallback(Fallback::MoveRefused);
                }
                MoveOutcome::TargetLost => {
                    self.mark_gone(target);
                    self.undo(from, to, index);
                    return BlockMove::NotAtAll;
                }
            }
        }
        // Only now: until all had arrived, a copied unit was needed where it was.
        let ours = |unit: &Extent| self.pagemap.unit(unit.head).kind() != Kind::Gone;
        if !copied {
            return BlockMove::Whole;
        }
        from.extents()
            .filter(ours)
            .for_each(|unit| self.evict(unit));
        BlockMove::WithoutSomeMarks
    }

    /// Brings the first `units` units back.
    fn undo(&self, from: Extent, to: Extent, units: usize) {
        for (source, target) in from.extents().zip(to.extents()).take(units) {
            let source_unit = self.pagemap.unit(source.head);
            if source_unit.kind() == Kind::Gone {
                // Vacant since a moment ago; were it taken, the program would fault, not read another's.
                if !self.map.reserve_at(source.start(), UNIT_BYTES) {
                    continue;
                }
                source_unit.set_kind(Kind::Busy);
            }
            // SAFETY: both are in this thread's hands, and mapped: the source again, if it was gone.
            unsafe { self.map.copy(target.start(), source.start(), UNIT_BYTES) };
            // What the program did to the pages came with them.
            self.renew_or_give_up(target);
        }
    }

    /// The last resort: a new block and a copy.
    fn copy_out(&self, extent: Extent, bytes: usize) -> Option<usize> {
        let copy = self.alloc_block(bytes, Contents::Any)?;
        let start = extent.start();
        let both = self.size_at(start)?.min(bytes);
        // SAFETY: the program gave this block to realloc; the other is live, and nobody has its address yet.
        unsafe { self.map.copy(start, copy, both) };
        self.free_block(start);
        self.state
            .lock()
            .counters
            .count_fallback(Fallback::ReallocCopied);
        Some(copy)
    }
}
