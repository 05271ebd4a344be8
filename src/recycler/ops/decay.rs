//! Giving back what was unused for a while: the governor's rounds, and a trim, for which nothing is too young.

use crate::core::amount::{Bytes, Pages};
use crate::core::extent_list::{ByAge, List};
use crate::core::page_ledger::Column;
use crate::core::unit::{Free, Kind, UnitId};
use crate::os::vm::Map;
use crate::policy::age::is_ripe;
use crate::state::recycler::{Recycler, State};
use crate::state::space::{Extent, Space};
use std::sync::atomic::Ordering::Relaxed;

/// Extents taken per hold of the lock.
const BATCH: usize = 32;

impl<M: Map> Recycler<M> {
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
                for extent in extents.iter().take(count) {
                    let pages = state.space.populated(*extent);
                    returned += pages;
                    state.space.note_aged(*extent, pages);
                    state = match in_place {
                        true => self.empty_in_place(state, *extent),
                        false => self.unmap(state, *extent),
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

    /// Returns what has been unused for `set_ms`, or for longer where the program's pauses are. Answers in how many
    /// milliseconds to call again; None: nothing is held.
    pub fn decay_round(&self, set_ms: u32) -> Option<u32> {
        if !self.settle() {
            return None;
        }
        let decay_ms = self.decay_ms(set_ms);
        self.purge_older(decay_ms);
        self.check();
        let mut state = self.lock();
        let slack_waits = state.space.ledger.slack() > Pages::NONE && !state.slack_refused;
        let space = &mut state.space;
        let idle = space.cached.units() + space.empty.units() == 0 && !slack_waits;
        let thrash = &mut space.tolerance.thrash;
        if idle {
            thrash.rest();
        } else if decay_ms > set_ms {
            // What is held for longer than was set earns nothing for being there.
            thrash.rest_when_quiet(space.now_ms, set_ms);
        }
        (!idle).then_some(period_ms(decay_ms))
    }

    /// `decay_round` where no governor calls it, unless another call of the program did so a moment ago.
    pub fn decay_round_if_due(&self, decay_ms: u32) {
        let (now_ms, last_ms) = (self.map.now_ms(), self.decayed_ms.load(Relaxed));
        if !is_ripe(now_ms, last_ms, period_ms(decay_ms)) {
            return;
        }
        let claim = self
            .decayed_ms
            .compare_exchange(last_ms, now_ms, Relaxed, Relaxed);
        if claim.is_ok() {
            self.decay_round(decay_ms);
        }
    }

    /// Gives everything back that no block needs. Answers bytes.
    pub fn purge_all(&self) -> Bytes {
        if !self.settle() {
            return Bytes::NONE;
        }
        let returned = self.purge_older(0);
        // Somebody needs the memory: what was learnt of its cost elsewhere does not count.
        self.lock().space.pauses.forget();
        self.check();
        self.geometry().bytes(returned)
    }
}

/// Four times per decay time: a page is kept for at most a quarter longer.
fn period_ms(decay_ms: u32) -> u32 {
    (decay_ms / 4).max(5)
}

impl Space {
    /// Books an extent's pages that go back after a while without use.
    pub fn note_aged(&mut self, extent: Extent, pages: Pages) {
        let last_use_ms = self.unit(extent.head).stamp();
        self.pauses.note_returned(pages, last_use_ms);
    }

    /// How long unused pages are kept, where `set_ms` is what was set: near a memory limit nothing else counts.
    pub fn decay_ms(&mut self, set_ms: u32) -> u32 {
        if self.tolerance.near_limit {
            self.pauses.forget();
        }
        self.pauses.look(self.now_ms, self.ledger.peak_live());
        self.pauses.decay_ms(set_ms)
    }
}

impl State {
    /// Takes extents that are `decay_ms` old out of a pool; at most one of each extent per call.
    pub fn take_ripe(&mut self, free: Free, decay_ms: u32, extents: &mut [Extent]) -> usize {
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
                // A child that is forked before its turn comes has its pages, too, and gives them back.
                self.space.label(*slot, Kind::Purging);
                self.take_off(*slot, Column::Purging);
            }
        }
        count
    }
}
