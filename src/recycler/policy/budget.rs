//! The budget: caching never raises the peak.
//!
//! Live, slack, cached and moving pages together never exceed the highest live seen, plus a tolerance: next to
//! nothing at first, and more for steady churn, which it spares the give-back and refault of the same few pages.

use crate::core::amount::{Bytes, Pages};
use crate::core::geometry::Geometry;
use crate::core::page_ledger::Ledger;
use crate::policy::churn::ChurnDetector;

/// The share of the peak that may be exceeded by anybody, and the least of it. Measured, as is the next
/// (docs/design/tuning.md).
const SHARE: u64 = 200;
const FLOOR: Bytes = Bytes::new(4 << 20);
/// Churn earns room as if the peak were higher by this: a small process comes to 32 MiB all the same.
const EARNS_AS_IF_BEYOND: Bytes = Bytes::new(140 << 20);
/// Within the tolerance, but no more, fresh pages come before moves.
const MAX_FRESH: Bytes = Bytes::new(32 << 20);

#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub geometry: Geometry,
    /// What the process may use, when that is known.
    pub memory_limit: Option<Bytes>,
    pub near_limit: bool,
    /// Earned by churn.
    pub churn: ChurnDetector,
}

impl Tolerance {
    /// Nothing near the limit; else the least and what was earned, but no more than a part of what the limit leaves.
    pub fn pages(&self, peak_live: Pages) -> Pages {
        if self.near_limit {
            return Pages::NONE;
        }
        let least = (peak_live / SHARE).max(self.geometry.pages(FLOOR));
        let free_hand = least + self.churn.extra_pages();
        match self.memory_limit {
            None => free_hand,
            Some(limit) => {
                let comfortable = self.geometry.pages(limit) / 4 * 3;
                free_hand.min(comfortable.saturating_sub(peak_live) / 8)
            }
        }
    }

    /// Books pages faulted in and pages given back for the budget; a cached page that moved counts as both.
    pub fn note_churn(&mut self, now_ms: u32, fresh: Pages, returned: Pages, peak_live: Pages) {
        let scale = peak_live + self.geometry.pages(EARNS_AS_IF_BEYOND);
        self.churn.note(now_ms, fresh, returned, peak_live, scale);
    }

    /// Blocks come and go steadily, and one of this size is no more than what may be held beyond the peak.
    pub fn is_churning(&self, ledger: &Ledger, pages: Pages, now_ms: u32) -> bool {
        self.churn.is_steady(now_ms) && pages <= self.pages(ledger.peak_live())
    }

    /// True when a block of fresh pages needs no page given back, nor more than a small tolerance.
    pub fn may_grow(&self, ledger: &Ledger, pages: Pages) -> bool {
        let peak_live = ledger.peak_live();
        let spare = self.pages(peak_live).min(self.geometry.pages(MAX_FRESH));
        let peak = peak_live.max(ledger.live() + pages);
        ledger.footprint() + pages <= peak + spare
    }

    /// Pages to give back now, beside those that other threads are about to. Meanwhile the footprint may be beyond the
    /// budget by the blocks of threads that found nothing left to give back, until those calls end.
    pub fn excess(&self, ledger: &Ledger) -> Pages {
        let allowed = ledger.peak_live() + self.pages(ledger.peak_live());
        ledger
            .kept()
            .saturating_sub(allowed)
            .min(ledger.cached() + ledger.slack())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::page_ledger::Column;

    const MIB: u64 = 256;

    fn tolerance(memory_limit: Option<Bytes>, near_limit: bool) -> Tolerance {
        Tolerance {
            geometry: Geometry { page_shift: 12 },
            memory_limit,
            near_limit,
            churn: ChurnDetector::new(),
        }
    }

    #[test]
    fn the_tolerance_has_a_floor_and_grows_with_the_peak() {
        let free = tolerance(None, false);
        assert_eq!(free.pages(Pages::NONE), Pages::new(4 * MIB));
        assert_eq!(free.pages(Pages::new(3200 * MIB)), Pages::new(16 * MIB));
    }

    #[test]
    fn churn_earns_a_fifth_of_the_peak_and_a_small_process_comes_to_32_mib() {
        for (peak_mib, tolerance_mib) in [(0, 32), (100, 52), (2000, 438)] {
            let peak = Pages::new(peak_mib * MIB);
            let mut tolerance = tolerance(None, false);
            for window in 0..200 {
                tolerance.note_churn(
                    1000 + window * 50,
                    peak + Pages::new(1),
                    peak + Pages::new(1),
                    peak,
                );
            }
            let earned = Pages::new(tolerance_mib * MIB);
            assert_eq!(tolerance.pages(peak), earned, "{peak_mib} MiB");
        }
    }

    #[test]
    fn the_tolerance_is_as_many_bytes_with_pages_of_every_size() {
        for page_shift in [12, 14, 16] {
            let geometry = Geometry { page_shift };
            let mut tolerance = tolerance(Some(Bytes::new(1 << 30)), false);
            tolerance.geometry = geometry;
            let bytes = |peak_mib: u64| {
                let peak = geometry.pages(Bytes::new(peak_mib << 20));
                geometry.bytes(tolerance.pages(peak))
            };
            assert_eq!(bytes(100), Bytes::new(4 << 20));
            assert_eq!(bytes(752), Bytes::new(2 << 20));
        }
    }

    #[test]
    fn the_tolerance_vanishes_near_a_limit() {
        let near = tolerance(None, true);
        assert_eq!(near.pages(Pages::new(1600 * MIB)), Pages::NONE);
        let limited = tolerance(Some(Bytes::new(1 << 30)), false);
        assert_eq!(limited.pages(Pages::new(900 * MIB)), Pages::NONE);
        assert_eq!(limited.pages(Pages::new(752 * MIB)), Pages::new(2 * MIB));
    }

    #[test]
    fn the_excess_is_never_more_than_what_can_be_given_back() {
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, Pages::new(100 * MIB));
        assert_eq!(tolerance(None, true).excess(&ledger), Pages::NONE);
        ledger.transfer(Column::System, Column::Cached, Pages::new(3 * MIB));
        assert_eq!(tolerance(None, true).excess(&ledger), Pages::new(3 * MIB));
        assert_eq!(tolerance(None, false).excess(&ledger), Pages::NONE);
    }

    #[test]
    fn what_a_thread_is_giving_back_no_other_gives_back_again() {
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, Pages::new(100 * MIB));
        ledger.transfer(Column::System, Column::Cached, Pages::new(50 * MIB));
        let free = tolerance(None, false);
        assert_eq!(free.excess(&ledger), Pages::new(46 * MIB));
        ledger.transfer(Column::Cached, Column::Purging, Pages::new(46 * MIB));
        assert_eq!(free.excess(&ledger), Pages::NONE);
        ledger.transfer(Column::System, Column::Cached, Pages::new(MIB));
        assert_eq!(free.excess(&ledger), Pages::new(MIB));
    }

    #[test]
    fn fresh_pages_are_taken_up_to_the_peak_and_the_least_tolerance() {
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, Pages::new(100 * MIB));
        ledger.transfer(Column::Live, Column::Cached, Pages::new(40 * MIB));
        let free = tolerance(None, false);
        assert!(free.may_grow(&ledger, Pages::new(4 * MIB)));
        assert!(!free.may_grow(&ledger, Pages::new(4 * MIB + 1)));
        ledger.transfer(Column::System, Column::Live, Pages::new(3140 * MIB));
        ledger.transfer(Column::Live, Column::System, Pages::new(40 * MIB));
        assert!(free.may_grow(&ledger, Pages::new(16 * MIB)));
        assert!(!free.may_grow(&ledger, Pages::new(16 * MIB + 1)));
    }

    #[test]
    fn of_what_churn_earned_fresh_pages_take_no_more_than_32_mib() {
        let mut ledger = Ledger::new();
        let peak = Pages::new(1000 * MIB);
        ledger.transfer(Column::System, Column::Cached, peak);
        ledger.transfer(Column::Cached, Column::Live, peak);
        ledger.transfer(Column::Live, Column::Cached, Pages::new(100 * MIB));
        let mut tolerance = tolerance(None, false);
        for window in 0..200 {
            tolerance.note_churn(1000 + window * 50, peak, peak, peak);
        }
        assert!(tolerance.may_grow(&ledger, Pages::new(32 * MIB)));
        assert!(!tolerance.may_grow(&ledger, Pages::new(32 * MIB + 1)));
    }

    #[test]
    fn churn_is_steady_and_of_blocks_within_the_tolerance_and_none_near_a_limit() {
        let peak = Pages::new(3200 * MIB);
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, peak);
        for near_limit in [false, true] {
            let mut tolerance = tolerance(None, near_limit);
            assert!(!tolerance.is_churning(&ledger, Pages::new(1), 0));
            let churned = Pages::new(100 * MIB);
            for window in 0..200 {
                tolerance.note_churn(1000 + window * 50, churned, churned, peak);
            }
            let most = tolerance.pages(peak);
            let fits = most.max(Pages::new(1));
            assert_eq!(tolerance.is_churning(&ledger, fits, 10_950), !near_limit);
            assert!(!tolerance.is_churning(&ledger, most + Pages::new(1), 10_950));
        }
    }
}
