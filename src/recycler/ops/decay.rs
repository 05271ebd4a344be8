//! Giving back what was unused for a while: the governor's rounds, and a trim, for which nothing is too young.

use crate::core::amount::{Bytes, Pages};
use crate::core::extent::Extent;
use crate::core::extent_list::{ByAge, List};
use crate::core::page_ledger::Column;
use crate::core::unit::{FreeKind, Kind, UnitId};
use crate::os::vm::Vm;
use crate::policy::age::is_expired;
use crate::state::recycler::{Recycler, State};
use std::sync::atomic::Ordering::Relaxed;

/// Extents taken per hold of the lock.
const BATCH: usize = 32;

impl<M: Vm> Recycler<M> {
    /// Unmaps everything free that has been so for `decay_ms`, and returns slack as old. Answers pages.
    fn purge_older(&self, decay_ms: u32) -> Pages {
        let mut returned = Pages::NONE;
        for free in [FreeKind::Cached, FreeKind::Empty] {
            loop {
                let mut extents = [Extent::default(); BATCH];
                let mut state = self.lock();
                // To unmap what lies between blocks would cut the mapping in two.
                let in_place = state.has_too_many_vmas(self.map.max_map_count());
                if in_place && free == FreeKind::Empty {
                    break;
                }
                let empty_before = state.space.empty.units();
                let count = state.take_expired(free, decay_ms, &mut extents);
                for extent in extents.iter().take(count) {
                    let pages = state.space.populated(*extent);
                    returned += pages;
                    state = match in_place {
                        true => self.empty_in_place(state, *extent),
                        false => self.unmap(state, *extent),
                    };
                }
                // Out of mappings the system splits none, and what was empty stays so.
                let stuck = free == FreeKind::Empty && state.space.empty.units() >= empty_before;
                if count < BATCH || stuck {
                    break;
                }
            }
        }
        let now = self.map.now_ms();
        loop {
            let pages = self.purge_slack(|stamp| is_expired(now, stamp, decay_ms));
            if pages == Pages::NONE {
                return returned;
            }
            returned += pages;
        }
    }

    /// Returns pages that were unused for `decay_ms`. The result is the time to the next call in
    /// milliseconds, or `None` if the recycler holds no free pages.
    pub fn decay_round(&self, decay_ms: u32) -> Option<u32> {
        if !self.adopt_after_fork() {
            return None;
        }
        self.purge_older(decay_ms);
        self.check();
        let mut state = self.lock();
        let slack_waits = state.space.ledger.slack() > Pages::NONE && !state.slack_refused;
        let space = &mut state.space;
        let idle = space.cached.units() + space.empty.units() == 0 && !slack_waits;
        if idle {
            space.tolerance.churn.reset();
        }
        (!idle).then_some(period_ms(decay_ms))
    }

    /// `decay_round` where no governor calls it, unless another call of the program did so a moment ago.
    pub fn decay_round_if_due(&self, decay_ms: u32) {
        let (now_ms, last_ms) = (self.map.now_ms(), self.decayed_ms.load(Relaxed));
        if !is_expired(now_ms, last_ms, period_ms(decay_ms)) {
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
        if !self.adopt_after_fork() {
            return Bytes::NONE;
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
    /// Takes extents that are `decay_ms` old out of a pool; at most one of each extent per call.
    pub fn take_expired(&mut self, free: FreeKind, decay_ms: u32, extents: &mut [Extent]) -> usize {
        let now = self.space.now_ms;
        let mut next = self.space.pool(free).0.oldest();
        let mut count = 0;
        while let Some(head) = next {
            let whole = Extent::new(head, self.space.unit(head).len());
            next = List::<ByAge>::after(self.space.pagemap, head);
            let ripe = |id: &UnitId| is_expired(now, self.space.unit(*id).stamp(), decay_ms);
            let Some(first) = whole.units().find(ripe) else {
                continue;
            };
            let len = (first..whole.end()).take_while(ripe).count() as u32;
            let Some(slot) = extents.get_mut(count) else {
                break;
            };
            *slot = self.space.take_part(whole, Extent::new(first, len), free);
            count += 1;
            if free == FreeKind::Cached {
                // A child that is forked before its turn comes has its pages, too, and gives them back.
                self.space.pagemap.label(*slot, Kind::Purging);
                self.remove_from_column(*slot, Column::Purging);
            }
        }
        count
    }
}
