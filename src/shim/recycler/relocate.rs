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
        self.pagemap.mark(run.head, run.len, Kind::Gone);
    }

    /// Empties an extent, by the next best means when the system refuses one; marks what is lost.
    pub fn evict(&self, run: Extent) {
        let (start, bytes) = (address(run.head), run.len as usize * UNIT_BYTES);
        if !self.map.discard(start, bytes) && !self.renew(run) {
            self.give_up(run);
        }
    }

    /// Maps the addresses anew that a marked block left; what stays as it was is given up.
    pub fn renew_source(&self, run: Extent) {
        let ours = |unit: &Extent| self.pagemap.unit(unit.head).kind() == Kind::Busy;
        if run.extents().all(|unit| ours(&unit)) && self.renew(run) {
            return;
        }
        for unit in run.extents().filter(ours) {
            if !self.renew(unit) {
                self.give_up(unit);
            }
        }
    }

    fn renew(&self, run: Extent) -> bool {
        self.map
            .renew(address(run.head), run.len as usize * UNIT_BYTES)
    }

    fn give_up(&self, run: Extent) {
        self.mark_gone(run);
        if !self
            .map
            .release(address(run.head), run.len as usize * UNIT_BYTES)
        {
            self.pagemap.mark(run.head, run.len, Kind::Stuck);
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
        let len = from.len;
        if len > 0 {
            self.space.sew(Extent { head: to, len }, Flags::SEAM);
        }
    }

    /// Books that a source whose block was marked is mapped anew.
    pub fn book_renewed(&mut self, run: Extent) {
        for id in run.units() {
            self.space.unit(id).set_flags(Flags::NONE);
        }
        self.space.sew(run, Flags::SEAM);
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
