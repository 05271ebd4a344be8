//! Moving pages from one extent to another, and what is left behind: gather and realloc share it.

use super::amount::Pages;
use super::engine::{Locked, Recycler, State};
use super::ledger::Column;
use super::map::{Map, Shift};
use super::space::Extent;
use super::tally::Fallback;
use super::unit::{address, Flags, Free, Kind, UNIT_BYTES};

impl<M: Map> Recycler<M> {
    pub fn shift(&self, from: Extent, to: Extent) -> Shift {
        let bytes = from.len as usize * UNIT_BYTES;
        self.map.shift(address(from.head), address(to.head), bytes)
    }

    pub fn mark_gone(&self, run: Extent) {
        self.mark(run, Kind::Gone);
    }

    fn mark(&self, run: Extent, kind: Kind) {
        for id in run.units() {
            self.pagemap.unit(id).set_kind(kind);
        }
    }

    /// Empties an extent, by the next best means when the system refuses one; marks what is lost.
    pub fn evict(&self, run: Extent) {
        let (start, bytes) = (address(run.head), run.len as usize * UNIT_BYTES);
        if self.map.discard(start, bytes) || self.map.renew(start, bytes) {
            return;
        }
        if self.map.release(start, bytes) {
            self.mark_gone(run);
        } else {
            self.mark(run, Kind::Stuck);
            self.state.lock().tally.fell_back(Fallback::Stuck);
        }
    }

    /// Frees what was gathered so far.
    pub fn abandon(&self, state: &mut Locked<'_>, target: Extent) {
        state.space.mark_busy(target);
        for id in target.units() {
            if self.pagemap.unit(id).kind() == Kind::Gone {
                state.space.disown(Extent { head: id, len: 1 });
            }
        }
        let ours = |id: &u32| self.pagemap.unit(*id).kind() == Kind::Busy;
        for id in target.units().filter(ours) {
            let run = Extent { head: id, len: 1 };
            match state.space.populated(run) {
                Pages::NONE => state.space.give(run, Free::Empty),
                pages => state.book_cached(run, pages),
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
        if from.len > 0 {
            self.space.unit(to).raise(Flags::SEAM);
            if let Some(behind) = self.space.pagemap.find(to + from.len) {
                behind.raise(Flags::SEAM);
            }
        }
    }

    /// Puts an extent whose pages were moving into the cache.
    pub fn book_cached(&mut self, run: Extent, pages: Pages) {
        self.space
            .ledger
            .transfer(Column::Moving, Column::Cached, pages);
        self.space.give(run, Free::Cached);
    }

    /// Puts an extent whose pages are gone into the pool of empty ones.
    pub fn empty_out(&mut self, run: Extent) {
        if run.len == 0 {
            return;
        }
        for id in run.units() {
            self.space.unit(id).set_populated(Pages::NONE);
        }
        self.space.give(run, Free::Empty);
    }

    /// Frees the addresses that moved pages left; `Gone` marks those that are not ours any more.
    pub fn bury(&mut self, run: Extent) {
        for id in run.units() {
            let unit = Extent { head: id, len: 1 };
            match self.space.unit(id).kind() {
                Kind::Gone => self.space.disown(unit),
                Kind::Stuck => {}
                _ => self.empty_out(unit),
            }
        }
    }
}
