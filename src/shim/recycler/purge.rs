//! Pages on their way back to the system: for the budget, by age, on trim.

use super::age::is_ripe;
use super::amount::{Bytes, Pages};
use super::engine::{Locked, Recycler, State};
use super::ledger::Column;
use super::list::{ByAge, List};
use super::map::Map;
use super::space::Extent;
use super::tally::Fallback;
use super::unit::{address, Flags, Free, Kind, UnitId, UNIT_BYTES};
use std::sync::atomic::Ordering::Relaxed;

/// Extents taken per hold of the lock.
const BATCH: usize = 32;
/// Unmapping holds the address space's lock: this many units at a time (some milliseconds).
const STRIDE: u32 = 16;

#[derive(Clone, Copy, Default)]
struct Parcel {
    run: Extent,
    pages: Pages,
    refused: bool,
}

impl<M: Map> Recycler<M> {
    /// Keeps the budget: gives the oldest cached pages back, then slack, until the footprint fits.
    /// Extents before fresh pages are touched.
    pub fn purge_excess(&self) {
        loop {
            let state = self.lock();
            let excess = state.space.excess();
            if excess == Pages::NONE {
                return;
            }
            let cached = state.space.ledger.cached() > Pages::NONE;
            drop(state);
            let returned = if cached {
                self.purge_cached(excess)
            } else {
                self.purge_slack(|_| true)
            };
            if returned == Pages::NONE {
                return;
            }
            self.lock().space.note_churn(Pages::NONE, returned);
        }
    }

    /// Drops about `wanted` of the oldest cached pages; their addresses stay ours. Answers pages.
    pub fn purge_cached(&self, wanted: Pages) -> Pages {
        let mut parcels = [Parcel::default(); BATCH];
        let mut state = self.lock();
        let mut taken = Pages::NONE;
        let mut count = 0;
        for parcel in &mut parcels {
            if taken >= wanted {
                break;
            }
            let Some(run) = state.take_oldest(wanted - taken) else {
                break;
            };
            *parcel = Parcel {
                run,
                pages: state.take_off(run),
                refused: false,
            };
            state.space.label(run, Kind::Purging);
            taken += parcel.pages;
            count += 1;
        }
        let parcels = parcels.get_mut(..count).unwrap_or(&mut []);
        drop(state);
        for parcel in parcels.iter_mut() {
            let bytes = parcel.run.len as usize * UNIT_BYTES;
            parcel.refused = !self.map.discard(address(parcel.run.head), bytes);
        }
        let mut state = self.lock();
        for parcel in parcels.iter() {
            if parcel.refused {
                state.tally.fell_back(Fallback::DiscardRefused);
                state = self.unmap(state, parcel.run);
            } else {
                state.book_purged(parcel.pages);
                state.empty_out(parcel.run);
            }
        }
        taken
    }

    /// Unmaps a `Busy` extent whose pages count as moving.
    pub fn unmap<'a>(&'a self, state: Locked<'a>, run: Extent) -> Locked<'a> {
        let pages = state.space.populated(run);
        state.space.label(run, Kind::Purging);
        drop(state);
        let gone = self.release_in_strides(run);
        let left = (
            address(run.head + gone),
            (run.len - gone) as usize * UNIT_BYTES,
        );
        // A pristine mapping in its place, or at least no pages.
        let renewed = gone == run.len || self.map.renew(left.0, left.1);
        let emptied = renewed || self.map.discard(left.0, left.1);
        let mut state = self.lock();
        let (gone, rest) = state.space.split(run, gone);
        state.space.disown(gone);
        state.space.sew(gone, Flags::SEAM);
        state.mappings.note_move();
        if state.in_window(gone) {
            state.space.give(gone, Free::Hole);
        }
        if rest.len > 0 && emptied {
            state.tally.fell_back(Fallback::UnmapRefused);
            for id in rest.units() {
                state
                    .space
                    .unit(id)
                    .set_flags(if renewed { Flags::NONE } else { Flags::ALTERED });
            }
            state.space.sew(rest, Flags::SEAM);
            state.empty_out(rest);
        } else if rest.len > 0 {
            // Sealed by the program: nobody's for ever.
            self.pagemap.mark(rest.head, rest.len, Kind::Stuck);
            state.tally.fell_back(Fallback::Stuck);
        }
        state.book_purged(pages);
        state
    }

    /// Drops the pages of a `Busy` extent, which count as moving; its addresses stay ours.
    fn empty_in_place<'a>(&'a self, state: Locked<'a>, run: Extent) -> Locked<'a> {
        state.space.label(run, Kind::Purging);
        drop(state);
        let emptied = self
            .map
            .discard(address(run.head), run.len as usize * UNIT_BYTES);
        let mut state = self.lock();
        if !emptied {
            state.tally.fell_back(Fallback::DiscardRefused);
            return self.unmap(state, run);
        }
        let pages = state.space.populated(run);
        state.book_purged(pages);
        state.empty_out(run);
        state
    }

    /// Answers how many units are unmapped: all, unless the system refuses.
    fn release_in_strides(&self, run: Extent) -> u32 {
        let mut gone = 0;
        while gone < run.len {
            let len = STRIDE.min(run.len - gone);
            let stride = Extent {
                head: run.head + gone,
                len,
            };
            // Once unmapped the addresses may be somebody else's: the child of a fork must know.
            self.pagemap
                .label(stride.end(), run.end() - stride.end(), Kind::Purging);
            self.mark_gone(stride);
            let bytes = len as usize * UNIT_BYTES;
            if !self.map.release(address(stride.head), bytes) {
                break;
            }
            gone += len;
        }
        gone
    }

    /// Unmaps everything free that has been so for `decay_ms`, and returns slack as old. Answers pages.
    fn purge_older(&self, decay_ms: u32) -> Pages {
        let mut returned = Pages::NONE;
        for free in [Free::Cached, Free::Empty] {
            loop {
                let mut extents = [Extent::default(); BATCH];
                let mut state = self.lock();
                // To unmap what lies between blocks would cut the mapping in two.
                let in_place = state.is_cut_up(self.map.mappings_allowed());
                if in_place && free == Free::Empty {
                    break;
                }
                let empty_before = state.space.empty.units();
                let count = state.take_ripe(free, decay_ms, &mut extents);
                for run in extents.iter().take(count) {
                    returned += state.space.populated(*run);
                    state = match in_place {
                        true => self.empty_in_place(state, *run),
                        false => self.unmap(state, *run),
                    };
                }
                // Out of mappings the system splits none, and what was empty stays so.
                let stuck = free == Free::Empty && state.space.empty.units() >= empty_before;
                if count < BATCH || stuck {
                    break;
                }
            }
        }
        let now = self.map.now_ms();
        loop {
            let pages = self.purge_slack(|stamp| is_ripe(now, stamp, decay_ms));
            if pages == Pages::NONE {
                return returned;
            }
            returned += pages;
        }
    }

    /// Returns what has been unused for `decay_ms`. Answers in how many milliseconds to call again; None:
    /// nothing is held.
    pub fn decay(&self, decay_ms: u32) -> Option<u32> {
        if !self.settle() {
            return None;
        }
        self.purge_older(decay_ms);
        self.check();
        let mut state = self.lock();
        let slack_waits = state.space.ledger.slack() > Pages::NONE && !state.slack_refused;
        let space = &mut state.space;
        let idle = space.cached.units() + space.empty.units() == 0 && !slack_waits;
        if idle {
            space.tolerance.thrash.rest();
        }
        (!idle).then_some(period_ms(decay_ms))
    }

    /// `decay` where no governor calls it, unless another call of the program did so a moment ago.
    pub fn decay_if_due(&self, decay_ms: u32) {
        let (now_ms, due_ms) = (self.map.now_ms(), self.decay_due_ms.load(Relaxed));
        // Signed: the clock wraps.
        if (now_ms.wrapping_sub(due_ms) as i32) < 0 {
            return;
        }
        let next_ms = now_ms.wrapping_add(period_ms(decay_ms));
        let claim = self
            .decay_due_ms
            .compare_exchange(due_ms, next_ms, Relaxed, Relaxed);
        if claim.is_ok() {
            self.decay(decay_ms);
        }
    }

    /// Gives everything back that no block needs. Answers bytes.
    pub fn trim(&self) -> Bytes {
        if !self.settle() {
            return Bytes(0);
        }
        let returned = self.purge_older(0);
        self.check();
        self.geometry().bytes(returned)
    }
}

/// Four times per decay time: a page is kept for at most a quarter longer.
fn period_ms(decay_ms: u32) -> u32 {
    (decay_ms / 4).max(5)
}

impl State {
    /// The oldest cached extent, of about as many pages as wanted.
    fn take_oldest(&mut self, wanted: Pages) -> Option<Extent> {
        let head = self.space.cached.oldest()?;
        let whole = Extent {
            head,
            len: self.space.unit(head).len(),
        };
        let mut pages = Pages::NONE;
        let mut len = 0;
        while len < whole.len && pages < wanted {
            pages += self.space.unit(head + len).populated();
            len += 1;
        }
        Some(self.space.carve(
            whole,
            Extent {
                head,
                len: len.max(1),
            },
            Free::Cached,
        ))
    }

    /// Takes a cached extent's pages off the cache's books.
    pub fn take_off(&mut self, run: Extent) -> Pages {
        let pages = self.space.populated(run);
        self.space
            .ledger
            .transfer(Column::Cached, Column::Moving, pages);
        pages
    }

    /// Pages that were taken off went back to the system.
    pub fn book_purged(&mut self, pages: Pages) {
        self.space
            .ledger
            .transfer(Column::Moving, Column::System, pages);
        self.tally.returned += pages;
    }

    /// Takes extents that are `decay_ms` old out of a pool; at most one of each extent per call.
    fn take_ripe(&mut self, free: Free, decay_ms: u32, extents: &mut [Extent]) -> usize {
        let now = self.space.now_ms;
        let mut next = self.space.free_list(free).first();
        let mut count = 0;
        while let Some(head) = next {
            let whole = Extent {
                head,
                len: self.space.unit(head).len(),
            };
            next = List::<ByAge>::after(self.space.pagemap, head);
            let ripe = |id: &UnitId| is_ripe(now, self.space.unit(*id).stamp(), decay_ms);
            let Some(first) = whole.units().find(ripe) else {
                continue;
            };
            let len = (first..whole.end()).take_while(ripe).count() as u32;
            let Some(slot) = extents.get_mut(count) else {
                break;
            };
            *slot = self.space.carve(whole, Extent { head: first, len }, free);
            count += 1;
            if free == Free::Cached {
                self.take_off(*slot);
            }
        }
        count
    }
}
