//! realloc of large blocks: pages move, bytes do not.

use super::engine::{Locked, Recycler, State};
use super::ledger::Column;
use super::map::{Map, Shift};
use super::space::Extent;
use super::tally::Fallback;
use super::unit::{address, Flags, Free, Kind, Need, UNIT_BYTES};

/// What became of a block that was to change its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resized {
    NotOurs,
    Done(usize),
    /// No memory; the block is as it was.
    Failed,
}

/// Free neighbours taken to grow in place.
const NEIGHBOURS: usize = 16;

impl<M: Map> Recycler<M> {
    pub fn resize(&self, start: usize, bytes: usize) -> Resized {
        let Some(run) = self.find(start) else {
            return Resized::NotOurs;
        };
        self.drop_inherited();
        let Some(need) = self.geometry().need(bytes) else {
            return Resized::Failed;
        };
        if need.units < run.len {
            self.shrink(run, need);
            self.check();
            return Resized::Done(start);
        }
        let mut state = self.lock_unpinned(run);
        if need.units == run.len || state.has_room(run, need) {
            let grown = state.grow_in_place(run, need);
            self.notice_weight(&state);
            drop(state);
            for fresh in grown {
                self.prepare_fresh(fresh, need, false);
            }
            self.purge_excess();
            self.check();
            return Resized::Done(start);
        }
        let moved = self
            .relocate(state, run, need)
            .or_else(|| self.copy_out(run, bytes));
        self.check();
        match moved {
            Some(moved) => Resized::Done(moved),
            None => Resized::Failed,
        }
    }

    /// Waits until nobody returns the block's slack; that takes a system call.
    fn lock_unpinned(&self, run: Extent) -> Locked<'_> {
        loop {
            let state = self.lock();
            if !state.space.unit(run.head).has(Flags::PINNED) {
                return state;
            }
            drop(state);
            std::thread::yield_now();
        }
    }

    fn shrink(&self, run: Extent, need: Need) {
        let mut state = self.lock_unpinned(run);
        let pages = state.space.vacate(run, Column::Moving);
        let (keep, rest) = state.space.split(run, need.units);
        let got = state.space.occupy(keep, need, Column::Moving);
        let freed = pages - got.recycled_pages;
        if rest.len == 0 {
            return;
        }
        state.in_flight += 1;
        drop(state);
        let clean = self.reset_attributes(rest, false);
        let mut state = self.lock();
        state.in_flight -= 1;
        if clean {
            state.book_cached(rest, freed);
        } else {
            state.tally.fell_back(Fallback::OddFlags);
            self.unmap(state, rest);
        }
    }

    /// Moves the block to a longer range. None: nothing changed.
    fn relocate(&self, state: Locked<'_>, run: Extent, need: Need) -> Option<usize> {
        let (state, target) = self.vacant(state, need.units)?;
        // First what is cached, while a lost target costs nothing.
        drop(self.fill(state, target, run.len, need.units)?);
        // The lock was free meanwhile: somebody may be returning the block's slack again.
        let mut state = self.lock_unpinned(run);
        let old = state.space.need_of(run);
        let pages = state.space.vacate(run, Column::Moving);
        state.space.mark_busy(run);
        state.space.mark_busy(target);
        state.in_flight += 1;
        drop(state);
        let own = Extent {
            head: target.head,
            len: run.len,
        };
        let arrived = self.move_block(run, own);
        let mut state = self.lock();
        state.in_flight -= 1;
        if !arrived {
            state.space.occupy(run, old, Column::Moving);
            state.lost_targets += 1;
            state.tally.fell_back(Fallback::TargetLost);
            self.abandon(&mut state, target);
            return None;
        }
        state.tally.moved += pages;
        state.inherit(run, target.head);
        state.bury(run);
        let fresh = state.fresh_part(target);
        let got = state.space.occupy(target, need, Column::Moving);
        state.tally.served(got, pages);
        self.notice_weight(&state);
        drop(state);
        self.prepare_fresh(fresh, need, false);
        self.purge_excess();
        Some(address(target.head))
    }

    /// Moves a block's pages; units that cannot move are copied. Units that are no longer ours are marked
    /// `Gone`. False: a part of the target was lost, the block is back where it was.
    fn move_block(&self, from: Extent, to: Extent) -> bool {
        match self.shift(from, to) {
            Shift::Done => return true,
            Shift::DoneSourceGone => {
                self.mark_gone(from);
                return true;
            }
            Shift::TargetLost => {
                self.mark_gone(to);
                return false;
            }
            Shift::Refused => {}
        }
        self.state.lock().tally.fell_back(Fallback::MovedByUnit);
        self.move_units(from, to)
    }

    fn move_units(&self, from: Extent, to: Extent) -> bool {
        let mut copied = false;
        for (index, (source, target)) in from.extents().zip(to.extents()).enumerate() {
            match self.shift(source, target) {
                Shift::Done => {}
                Shift::DoneSourceGone => self.mark_gone(source),
                Shift::Refused => {
                    self.map
                        .copy(address(source.head), address(target.head), UNIT_BYTES);
                    copied = true;
                    self.state.lock().tally.fell_back(Fallback::MoveRefused);
                }
                Shift::TargetLost => {
                    self.mark_gone(target);
                    self.undo(from, to, index);
                    return false;
                }
            }
        }
        // Only now: until all had arrived, a copied unit was needed where it was.
        let ours = |unit: &Extent| self.pagemap.unit(unit.head).kind() != Kind::Gone;
        if copied {
            from.extents()
                .filter(ours)
                .for_each(|unit| self.evict(unit));
        }
        true
    }

    /// Brings the first `units` units back.
    fn undo(&self, from: Extent, to: Extent, units: usize) {
        for (source, target) in from.extents().zip(to.extents()).take(units) {
            let source_unit = self.pagemap.unit(source.head);
            if source_unit.kind() == Kind::Gone {
                // Vacant since a moment ago; were it taken, the program would fault, not read another's.
                if !self.map.reserve_at(address(source.head), UNIT_BYTES) {
                    continue;
                }
                source_unit.set_kind(Kind::Busy);
            }
            self.map
                .copy(address(target.head), address(source.head), UNIT_BYTES);
            self.evict(target);
        }
    }

    /// The last resort: a new block and a copy.
    fn copy_out(&self, run: Extent, bytes: usize) -> Option<usize> {
        let copy = self.alloc(bytes, false)?;
        let start = address(run.head);
        self.map
            .copy(start, copy, self.usable_size(start)?.min(bytes));
        self.free(start);
        self.state.lock().tally.fell_back(Fallback::ReallocCopied);
        Some(copy)
    }
}

impl State {
    /// Free neighbours make the extent long enough.
    fn has_room(&self, run: Extent, need: Need) -> bool {
        let mut end = run.end();
        for _ in 0..NEIGHBOURS {
            let Some(next) = self.free_extent_at(end) else {
                return false;
            };
            end = next.0.end();
            if end - run.head >= need.units {
                return true;
            }
        }
        false
    }

    fn free_extent_at(&self, head: u32) -> Option<(Extent, Free)> {
        let at = |free: Free| {
            let run = self.space.extent_at(head, free.kind())?;
            Some((run, free))
        };
        at(Free::Cached).or_else(|| at(Free::Empty))
    }

    /// Enlarges the block over its free neighbours. Answers the taken extents without pages.
    fn grow_in_place(&mut self, run: Extent, need: Need) -> [Extent; NEIGHBOURS] {
        let mut fresh = [Extent::default(); NEIGHBOURS];
        let own = self.space.vacate(run, Column::Moving);
        let mut pages = own;
        let mut len = run.len;
        for slot in &mut fresh {
            if len >= need.units {
                break;
            }
            let Some((next, free)) = self.free_extent_at(run.head + len) else {
                break;
            };
            let part = Extent {
                head: next.head,
                len: next.len.min(need.units - len),
            };
            self.space.carve(next, part, free);
            if free == Free::Cached {
                pages += self.take_off(part);
            } else {
                *slot = part;
            }
            len += part.len;
        }
        let got = self.space.occupy(
            Extent {
                head: run.head,
                len,
            },
            need,
            Column::Moving,
        );
        debug_assert_eq!(got.recycled_pages, pages);
        self.tally.served(got, own);
        fresh
    }
}
