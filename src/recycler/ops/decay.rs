//! Returns memory that was unused for the decay time: in the governor's rounds, in a trim (for which
//! the decay time is zero), and after a refused mapping. docs/design/tuning.md has the measurement
//! of the default.
//!
//! Invariant: an extent is taken out of its pool under the lock, and unmapped without it.

use crate::core::extent_pool::{ByAge, List};
use crate::core::geometry::{Bytes, Pages};
use crate::core::page_ledger::Column;
use crate::core::unit::{Extent, FreeKind, Kind, UnitId};
use crate::os::vm::Vm;
use crate::policy::age::is_expired;
use crate::state::recycler::{Recycler, State, MAX_WAITS};
use std::sync::atomic::Ordering::Relaxed;

/// Extents that are taken under one acquisition of the lock.
const BATCH: usize = 32;

/// How free extents are purged near the limit of VMAs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Addresses {
    /// They stay mapped: to unmap an extent between two blocks would split a VMA.
    MayStay,
    /// They are unmapped as far as the system allows it.
    Unmap,
}

/// The result of one batch.
struct BatchOutcome {
    pages: Pages,
    /// Another batch would find nothing, or would not make progress.
    is_last: bool,
}

impl<V: Vm> Recycler<V> {
    /// Returns the free extents and the slack that were unused for `decay_ms`.
    fn purge_older(&self, decay_ms: u32) -> Pages {
        let mut returned = self.purge_extents(decay_ms, Addresses::MayStay);
        let now = self.vm.now_ms();
        loop {
            let pages = self.purge_slack(|stamp| is_expired(now, stamp, decay_ms));
            if pages == Pages::NONE {
                return returned;
            }
            returned += pages;
        }
    }

    /// Returns the free extents that were unused for `decay_ms`.
    fn purge_extents(&self, decay_ms: u32, addresses: Addresses) -> Pages {
        let mut returned = Pages::NONE;
        for free in [FreeKind::Cached, FreeKind::Empty] {
            loop {
                let batch = self.purge_batch(free, decay_ms, addresses);
                returned += batch.pages;
                if batch.is_last {
                    break;
                }
            }
        }
        returned
    }

    fn purge_batch(&self, free: FreeKind, decay_ms: u32, addresses: Addresses) -> BatchOutcome {
        let mut pages = Pages::NONE;
        let mut extents = [Extent::default(); BATCH];
        let mut state = self.lock();
        let in_place =
            addresses == Addresses::MayStay && state.has_too_many_vmas(self.vm.max_map_count());
        if in_place && free == FreeKind::Empty {
            return BatchOutcome {
                pages,
                is_last: true,
            };
        }
        let empty_before = state.space.empty.units();
        let count = state.take_expired(free, decay_ms, &mut extents);
        for extent in extents.iter().take(count) {
            pages += state.space.populated(*extent);
            state = if in_place {
                self.empty_in_place(state, *extent)
            } else {
                self.unmap(state, *extent)
            };
        }
        // At the limit of VMAs the system refuses an unmap that splits one: the extent stays empty.
        let no_progress = free == FreeKind::Empty && state.space.empty.units() >= empty_before;
        BatchOutcome {
            pages,
            is_last: count < BATCH || no_progress,
        }
    }

    /// Returns pages that were unused for `decay_ms`. The result is the time to the next call in
    /// milliseconds, or `None` if nothing is left to return.
    pub fn decay_round(&self, decay_ms: u32) -> Option<u32> {
        if !self.adopt_after_fork() {
            return None;
        }
        self.purge_older(decay_ms);
        self.check();
        let mut state = self.lock();
        let has_slack = state.space.ledger.slack() > Pages::NONE && !state.slack_refused;
        let is_idle = state.free_units() == 0 && !has_slack;
        if is_idle {
            state.space.tolerance.churn.reset();
        }
        (!is_idle).then_some(period_ms(decay_ms))
    }

    /// For processes without a governor: calls `decay_round` if a period has passed since the last
    /// call.
    pub fn decay_round_if_due(&self, decay_ms: u32) {
        let (now_ms, last_ms) = (self.vm.now_ms(), self.decayed_ms.load(Relaxed));
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

    /// Unmaps everything that no block needs, and waits for other threads that are doing so. Called
    /// after the system refused memory. False: there was nothing, so a second try would fail, too.
    #[cold]
    pub fn release_addresses(&self) -> bool {
        if !self.adopt_after_fork() {
            return false;
        }
        let mut has_released = false;
        for waits in 0..MAX_WAITS {
            let state = self.lock();
            let has_free = state.free_units() > 0;
            let others_unmap =
                state.unmapping_units > 0 || state.space.ledger.purging() > Pages::NONE;
            drop(state);
            if !has_free && !others_unmap {
                break;
            }
            has_released = true;
            self.purge_extents(0, Addresses::Unmap);
            if !others_unmap {
                break;
            }
            self.wait_for_thread(waits);
        }
        self.check();
        has_released
    }

    /// Returns all memory that no block needs.
    pub fn purge_all(&self) -> Bytes {
        if !self.adopt_after_fork() {
            return Bytes::NONE;
        }
        let returned = self.purge_older(0);
        self.check();
        self.geometry().bytes(returned)
    }
}

/// Four rounds per decay time: a page stays at most a quarter longer.
fn period_ms(decay_ms: u32) -> u32 {
    (decay_ms / 4).max(5)
}

impl State {
    /// Takes expired units out of a pool. Of each extent it takes the first run of them; a second
    /// run, behind younger units, waits for the next call. Returns the number of runs taken.
    pub fn take_expired(&mut self, free: FreeKind, decay_ms: u32, extents: &mut [Extent]) -> usize {
        let now = self.space.now_ms;
        let mut next = self.space.pool(free).0.oldest();
        let mut count = 0;
        while let Some(head) = next {
            let whole = Extent::new(head, self.space.unit(head).len());
            next = List::<ByAge>::after(self.space.pagemap, head);
            let is_old = |id: &UnitId| is_expired(now, self.space.unit(*id).stamp(), decay_ms);
            let Some(first) = whole.units().find(is_old) else {
                continue;
            };
            let len = (first..whole.end()).take_while(is_old).count() as u32;
            let Some(slot) = extents.get_mut(count) else {
                break;
            };
            *slot = self.space.take_part(whole, Extent::new(first, len), free);
            count += 1;
            if free == FreeKind::Cached {
                // A child forked before the extent is unmapped has its pages, too, and returns
                // them.
                self.space.pagemap.label(*slot, Kind::Purging);
                self.remove_from_column(*slot, Column::Purging);
            }
        }
        count
    }
}
