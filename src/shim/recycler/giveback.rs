//! Pages on their way back to the system: for the budget, by age, on trim.

use super::amount::{Bytes, Pages};
use super::engine::{Locked, Recycler, State};
use super::ledger::Column;
use super::map::Map;
use super::space::Run;
use super::stats::Fallback;
use super::unit::{address, flag, kind, UnitId, UNIT_BYTES};

/// Runs taken per hold of the lock.
const BATCH: usize = 32;
/// Unmapping holds the address space's lock: this many units at a time (some milliseconds).
const STRIDE: u32 = 16;

#[derive(Clone, Copy, Default)]
struct Parcel {
    run: Run,
    pages: Pages,
    refused: bool,
}

/// How often slack that the system refuses is passed over in one call. One lap of the queue is less, unless other
/// threads change it meanwhile.
const REFUSALS: usize = 4096;

/// What became of the first slack in the queue.
enum Slack {
    NoneRipe,
    /// Of the block that begins here.
    Refused(UnitId),
    Returned(Pages),
}

/// A block whose slack is being returned.
#[derive(Clone, Copy)]
pub struct Pinned {
    run: Run,
    from: usize,
    bytes: usize,
    pages: Pages,
}

impl<M: Map> Recycler<M> {
    /// Keeps the budget: gives the oldest cached pages back, then slack, until the footprint fits.
    /// Runs before fresh pages are touched.
    pub fn settle(&self) {
        loop {
            let state = self.lock();
            let excess = state.space.excess();
            if excess == Pages::NONE {
                return;
            }
            let cached = state.space.ledger.cached() > Pages::NONE;
            drop(state);
            let returned = if cached {
                self.return_cached(excess)
            } else {
                self.return_slack(|_| true)
            };
            if returned == Pages::NONE {
                return;
            }
            self.lock().space.note_churn(Pages::NONE, returned);
        }
    }

    /// Drops about `wanted` of the oldest cached pages; their addresses stay ours. Answers pages.
    pub fn return_cached(&self, wanted: Pages) -> Pages {
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
            taken += parcel.pages;
            count += 1;
        }
        let parcels = parcels.get_mut(..count).unwrap_or(&mut []);
        state.in_flight += 1;
        drop(state);
        for parcel in parcels.iter_mut() {
            let bytes = parcel.run.len as usize * UNIT_BYTES;
            parcel.refused = !self.map.discard(address(parcel.run.head), bytes);
        }
        let mut state = self.lock();
        state.in_flight -= 1;
        for parcel in parcels.iter() {
            if parcel.refused {
                state.tally.fell_back(Fallback::DiscardRefused);
                state = self.unmap(state, parcel.run);
            } else {
                state.book_returned(parcel.pages);
                state.empty_out(parcel.run);
            }
        }
        taken
    }

    /// Unmaps a `BUSY` run whose pages count as moving.
    pub fn unmap<'a>(&'a self, mut state: Locked<'a>, run: Run) -> Locked<'a> {
        state.in_flight += 1;
        let pages = state.space.populated(run);
        drop(state);
        let mut gone = 0;
        while gone < run.len {
            let len = STRIDE.min(run.len - gone);
            if !self
                .map
                .release(address(run.head + gone), len as usize * UNIT_BYTES)
            {
                break;
            }
            gone += len;
        }
        let left = (
            address(run.head + gone),
            (run.len - gone) as usize * UNIT_BYTES,
        );
        // A pristine mapping in its place, or at least no pages.
        let emptied =
            gone == run.len || self.map.renew(left.0, left.1) || self.map.discard(left.0, left.1);
        let mut state = self.lock();
        state.in_flight -= 1;
        let (gone, rest) = state.space.split(run, gone);
        state.space.disown(gone);
        if state.in_window(gone) {
            state.space.give(gone, kind::HOLE);
        }
        if rest.len > 0 && emptied {
            state.tally.fell_back(Fallback::UnmapRefused);
            for id in rest.units() {
                state.space.unit(id).set_flags(flag::ODD);
            }
            state.empty_out(rest);
        } else if rest.len > 0 {
            // Sealed by the program: nobody's for ever.
            state.tally.fell_back(Fallback::Stuck);
        }
        state.book_returned(pages);
        state
    }

    /// Returns the slack of one block, of those in the queue for which `ripe` (of the time stamp) holds.
    fn return_slack(&self, ripe: impl Fn(u32) -> bool + Copy) -> Pages {
        let mut lap_from = 0;
        for _ in 0..REFUSALS {
            match self.return_first_slack(ripe, lap_from) {
                Slack::NoneRipe => return Pages::NONE,
                Slack::Refused(head) if lap_from == 0 => lap_from = head,
                Slack::Refused(_) => {}
                Slack::Returned(pages) => return pages,
            }
        }
        Pages::NONE
    }

    fn return_first_slack(&self, ripe: impl Fn(u32) -> bool, lap_from: UnitId) -> Slack {
        let mut state = self.lock();
        let Some(pinned) = state.pin_slack(ripe, lap_from) else {
            return Slack::NoneRipe;
        };
        state.in_flight += 1;
        drop(state);
        let dropped = self.map.discard(pinned.from, pinned.bytes);
        let mut state = self.lock();
        state.in_flight -= 1;
        state.end_return(&pinned, dropped);
        let head = state.space.unit(pinned.run.head);
        if head.has(flag::FREED) {
            head.lower(flag::FREED);
            self.finish_free(state, pinned.run);
        }
        if dropped {
            Slack::Returned(pinned.pages)
        } else {
            Slack::Refused(pinned.run.head)
        }
    }

    /// Unmaps everything free that has been so for `decay_ms`, and returns slack as old. Answers pages.
    fn return_older(&self, decay_ms: u32) -> Pages {
        let mut returned = Pages::NONE;
        for kind in [kind::CACHED, kind::EMPTY] {
            loop {
                let mut runs = [Run::default(); BATCH];
                let mut state = self.lock();
                let empty_before = state.space.empty.units();
                let count = state.take_ripe(kind, decay_ms, &mut runs);
                for run in runs.iter().take(count) {
                    returned += state.space.populated(*run);
                    state = self.unmap(state, *run);
                }
                // Out of mappings the system splits none, and what was empty stays so.
                let stuck = kind == kind::EMPTY && state.space.empty.units() >= empty_before;
                if count < BATCH || stuck {
                    break;
                }
            }
        }
        let now = self.map.now_ms();
        loop {
            let pages = self.return_slack(|stamp| is_ripe(now, stamp, decay_ms));
            if pages == Pages::NONE {
                return returned;
            }
            returned += pages;
        }
    }

    /// Returns what has been unused for `decay_ms`. Answers in how many milliseconds to call again; None:
    /// nothing is held.
    pub fn decay(&self, decay_ms: u32) -> Option<u32> {
        self.return_older(decay_ms);
        self.check();
        let mut state = self.lock();
        let slack_waits = state.space.ledger.slack() > Pages::NONE && !state.slack_refused;
        let space = &mut state.space;
        let idle = space.cached.units() + space.empty.units() == 0 && !slack_waits;
        if idle {
            space.tolerance.thrash.rest();
        }
        // Four times per decay time: a page is kept for at most a quarter longer.
        (!idle).then_some((decay_ms / 4).max(5))
    }

    /// Gives everything back that no block needs. Answers bytes.
    pub fn trim(&self) -> Bytes {
        let returned = self.return_older(0);
        self.check();
        self.geometry().bytes(returned)
    }
}

fn is_ripe(now: u32, stamp: u32, decay_ms: u32) -> bool {
    // Signed: a stamp may be a little in the future of `now`, and the clock wraps.
    decay_ms == 0 || now.wrapping_sub(stamp) as i32 >= decay_ms as i32
}

impl State {
    /// The oldest cached run, of about as many pages as wanted.
    fn take_oldest(&mut self, wanted: Pages) -> Option<Run> {
        let head = self.space.cached.oldest();
        if head == 0 {
            return None;
        }
        let whole = Run {
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
            Run {
                head,
                len: len.max(1),
            },
            kind::CACHED,
        ))
    }

    /// Takes a cached run's pages off the cache's books.
    pub fn take_off(&mut self, run: Run) -> Pages {
        let pages = self.space.populated(run);
        self.space
            .ledger
            .transfer(Column::Cached, Column::Moving, pages);
        pages
    }

    /// Pages that were taken off went back to the system.
    pub fn book_returned(&mut self, pages: Pages) {
        self.space
            .ledger
            .transfer(Column::Moving, Column::System, pages);
        self.tally.returned += pages;
    }

    /// Takes runs that are `decay_ms` old out of a pool; at most one of each span per call.
    fn take_ripe(&mut self, kind: u8, decay_ms: u32, runs: &mut [Run]) -> usize {
        let now = self.space.now_ms;
        let pool = if kind == kind::CACHED {
            &self.space.cached
        } else {
            &self.space.empty
        };
        let mut head: UnitId = pool.oldest();
        let mut count = 0;
        while head != 0 {
            let unit = self.space.unit(head);
            let whole = Run {
                head,
                len: unit.len(),
            };
            head = unit.newer();
            let ripe = |id: &UnitId| is_ripe(now, self.space.unit(*id).stamp(), decay_ms);
            let Some(first) = whole.units().find(ripe) else {
                continue;
            };
            let len = (first..whole.end()).take_while(ripe).count() as u32;
            let Some(slot) = runs.get_mut(count) else {
                break;
            };
            *slot = self.space.carve(whole, Run { head: first, len }, kind);
            count += 1;
            if kind == kind::CACHED {
                self.take_off(*slot);
            }
        }
        count
    }

    /// Pins the first block in the slack queue, when it is ripe and not `but`, and takes its slack off the books.
    pub fn pin_slack(&mut self, ripe: impl Fn(u32) -> bool, but: UnitId) -> Option<Pinned> {
        let space = &mut self.space;
        let head = space.slack_queue.first();
        if head == 0 || head == but {
            return None;
        }
        let run = Run {
            head,
            len: space.unit(head).len(),
        };
        let last = space.unit(run.end() - 1);
        if !ripe(last.stamp()) {
            return None;
        }
        let need = space.need_of(run);
        let pages = space.slack_of(run, need);
        space.forget_slack(run, need, Column::Moving);
        last.set_populated(need.tail);
        space.pin(head);
        let from = address(run.end() - 1) + space.geometry.size(need.tail);
        Some(Pinned {
            run,
            from,
            bytes: space.geometry.size(pages),
            pages,
        })
    }

    /// Ends what `pin_slack` began. Pages that the system keeps (the program locked them) are slack again.
    fn end_return(&mut self, pinned: &Pinned, dropped: bool) {
        self.space.unpin(pinned.run.head);
        self.slack_refused = !dropped;
        if dropped {
            self.book_returned(pinned.pages);
            return;
        }
        self.tally.fell_back(Fallback::DiscardRefused);
        let need = self.space.need_of(pinned.run);
        self.space
            .offer_slack(pinned.run, need.tail + pinned.pages, Column::Moving);
    }
}
