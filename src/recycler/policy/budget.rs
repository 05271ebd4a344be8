//! The budget: the peak of the live pages plus a tolerance. Caching never exceeds it.
//!
//! All pages of the recycler together (live, slack, cached, moving) stay within the budget. The
//! tolerance is small at first. Steady churn raises it, so that the same few pages are not purged
//! and faulted in again and again. `ops::purge` enforces the budget; this file only computes it.

use crate::core::geometry::{Bytes, Geometry, Pages};
use crate::core::page_ledger::Ledger;
use crate::policy::churn::ChurnDetector;

/// The base tolerance: one part in `SHARE` of the peak, at least `FLOOR`. Measured, as is the next
/// constant (docs/design/tuning.md).
const SHARE: u64 = 200;
const FLOOR: Bytes = Bytes::new(4 << 20);
/// Churn raises the tolerance as if the peak were higher by this, so that a small process reaches
/// 32 MiB.
const CHURN_SCALE_BASE: Bytes = Bytes::new(140 << 20);
/// An allocation takes fresh pages instead of moving cached ones while it needs at most this much
/// of the tolerance.
const MAX_FRESH: Bytes = Bytes::new(32 << 20);

#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub geometry: Geometry,
    /// The memory limit of the process, if it is known.
    pub memory_limit: Option<Bytes>,
    pub near_limit: bool,
    /// Raises the tolerance.
    pub churn: ChurnDetector,
}

impl Tolerance {
    pub const fn new(geometry: Geometry) -> Self {
        Tolerance {
            geometry,
            memory_limit: None,
            near_limit: false,
            churn: ChurnDetector::new(),
        }
    }

    /// Zero near the memory limit. Otherwise the base plus the part that churn added. With a limit
    /// it is at most an eighth of the distance between the peak and three quarters of the limit.
    pub fn pages(&self, peak_live: Pages) -> Pages {
        if self.near_limit {
            return Pages::NONE;
        }
        let base = (peak_live / SHARE).max(self.geometry.pages(FLOOR));
        let tolerance = base + self.churn.extra_pages();
        match self.memory_limit {
            None => tolerance,
            Some(limit) => {
                let comfortable = self.geometry.pages(limit) / 4 * 3;
                tolerance.min(comfortable.saturating_sub(peak_live) / 8)
            }
        }
    }

    /// The scale of the steps in which churn raises the tolerance.
    pub fn churn_scale(&self, peak_live: Pages) -> Pages {
        peak_live + self.geometry.pages(CHURN_SCALE_BASE)
    }

    /// True if a block should take fresh pages rather than move cached ones, as a block gathered
    /// from many VMAs costs more at each free (`ops::attributes`). Fresh pages are preferred
    /// if they fit into the budget. During steady churn they are preferred even if other pages must
    /// be purged for them.
    pub fn prefers_fresh(&self, ledger: &Ledger, pages: Pages, now_ms: u32) -> bool {
        self.fits_steady_churn(ledger, pages, now_ms) || self.has_room_for(ledger, pages)
    }

    /// True during steady churn for a block that fits into the tolerance.
    fn fits_steady_churn(&self, ledger: &Ledger, pages: Pages, now_ms: u32) -> bool {
        self.churn.is_steady(now_ms) && pages <= self.pages(ledger.peak_live())
    }

    /// True if a block of fresh pages needs no purge, and at most `MAX_FRESH` of the tolerance.
    fn has_room_for(&self, ledger: &Ledger, pages: Pages) -> bool {
        let peak_live = ledger.peak_live();
        let spare = self.pages(peak_live).min(self.geometry.pages(MAX_FRESH));
        let peak = peak_live.max(ledger.live() + pages);
        ledger.footprint() + pages <= peak + spare
    }

    /// Pages to purge now, in addition to those that other threads are purging. At most the cached
    /// pages and the slack: pages that a call is moving may exceed the budget until the call ends.
    pub fn excess(&self, ledger: &Ledger) -> Pages {
        let budget = ledger.peak_live() + self.pages(ledger.peak_live());
        ledger
            .kept()
            .saturating_sub(budget)
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
            memory_limit,
            near_limit,
            ..Tolerance::new(Geometry { page_shift: 12 })
        }
    }

    /// Records 200 windows. In each, the program purges `pages` pages and faults them in again.
    fn churn(tolerance: &mut Tolerance, pages: Pages, peak: Pages) {
        let scale = tolerance.churn_scale(peak);
        for window in 0..200 {
            let now_ms = 1000 + window * 50;
            tolerance.churn.record(now_ms, pages, pages, peak, scale);
        }
    }

    #[test]
    fn the_tolerance_has_a_floor_and_grows_with_the_peak() {
        let unlimited = tolerance(None, false);
        assert_eq!(unlimited.pages(Pages::NONE), Pages::new(4 * MIB));
        assert_eq!(
            unlimited.pages(Pages::new(3200 * MIB)),
            Pages::new(16 * MIB)
        );
    }

    #[test]
    fn churn_adds_a_fifth_of_the_peak_and_a_small_process_reaches_32_mib() {
        for (peak_mib, tolerance_mib) in [(0, 32), (100, 52), (2000, 438)] {
            let peak = Pages::new(peak_mib * MIB);
            let mut tolerance = tolerance(None, false);
            churn(&mut tolerance, peak + Pages::new(1), peak);
            let expected = Pages::new(tolerance_mib * MIB);
            assert_eq!(tolerance.pages(peak), expected, "{peak_mib} MiB");
        }
    }

    #[test]
    fn the_tolerance_in_bytes_is_the_same_for_each_page_size() {
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
    fn the_tolerance_is_zero_near_a_limit() {
        let near = tolerance(None, true);
        assert_eq!(near.pages(Pages::new(1600 * MIB)), Pages::NONE);
        let limited = tolerance(Some(Bytes::new(1 << 30)), false);
        assert_eq!(limited.pages(Pages::new(900 * MIB)), Pages::NONE);
        assert_eq!(limited.pages(Pages::new(752 * MIB)), Pages::new(2 * MIB));
    }

    #[test]
    fn the_excess_is_at_most_the_pages_that_can_be_purged() {
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, Pages::new(100 * MIB));
        assert_eq!(tolerance(None, true).excess(&ledger), Pages::NONE);
        ledger.transfer(Column::System, Column::Cached, Pages::new(3 * MIB));
        assert_eq!(tolerance(None, true).excess(&ledger), Pages::new(3 * MIB));
        assert_eq!(tolerance(None, false).excess(&ledger), Pages::NONE);
    }

    #[test]
    fn pages_that_one_thread_is_purging_are_not_excess_for_another() {
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, Pages::new(100 * MIB));
        ledger.transfer(Column::System, Column::Cached, Pages::new(50 * MIB));
        let unlimited = tolerance(None, false);
        assert_eq!(unlimited.excess(&ledger), Pages::new(46 * MIB));
        ledger.transfer(Column::Cached, Column::Purging, Pages::new(46 * MIB));
        assert_eq!(unlimited.excess(&ledger), Pages::NONE);
        ledger.transfer(Column::System, Column::Cached, Pages::new(MIB));
        assert_eq!(unlimited.excess(&ledger), Pages::new(MIB));
    }

    #[test]
    fn fresh_pages_are_preferred_up_to_the_peak_plus_the_base_tolerance() {
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, Pages::new(100 * MIB));
        ledger.transfer(Column::Live, Column::Cached, Pages::new(40 * MIB));
        let unlimited = tolerance(None, false);
        assert!(unlimited.has_room_for(&ledger, Pages::new(4 * MIB)));
        assert!(!unlimited.has_room_for(&ledger, Pages::new(4 * MIB + 1)));
        ledger.transfer(Column::System, Column::Live, Pages::new(3140 * MIB));
        ledger.transfer(Column::Live, Column::System, Pages::new(40 * MIB));
        assert!(unlimited.has_room_for(&ledger, Pages::new(16 * MIB)));
        assert!(!unlimited.has_room_for(&ledger, Pages::new(16 * MIB + 1)));
    }

    #[test]
    fn fresh_pages_take_at_most_32_mib_of_a_tolerance_that_churn_raised() {
        let mut ledger = Ledger::new();
        let peak = Pages::new(1000 * MIB);
        ledger.transfer(Column::System, Column::Cached, peak);
        ledger.transfer(Column::Cached, Column::Live, peak);
        ledger.transfer(Column::Live, Column::Cached, Pages::new(100 * MIB));
        let mut tolerance = tolerance(None, false);
        churn(&mut tolerance, peak, peak);
        assert!(tolerance.has_room_for(&ledger, Pages::new(32 * MIB)));
        assert!(!tolerance.has_room_for(&ledger, Pages::new(32 * MIB + 1)));
    }

    #[test]
    fn blocks_within_the_tolerance_churn_and_none_do_near_a_limit() {
        let peak = Pages::new(3200 * MIB);
        let mut ledger = Ledger::new();
        ledger.transfer(Column::System, Column::Live, peak);
        for near_limit in [false, true] {
            let mut tolerance = tolerance(None, near_limit);
            assert!(!tolerance.fits_steady_churn(&ledger, Pages::new(1), 0));
            let churned = Pages::new(100 * MIB);
            churn(&mut tolerance, churned, peak);
            let limit = tolerance.pages(peak);
            let fits = limit.max(Pages::new(1));
            assert_eq!(
                tolerance.fits_steady_churn(&ledger, fits, 10_950),
                !near_limit
            );
            assert!(!tolerance.fits_steady_churn(&ledger, limit + Pages::new(1), 10_950));
        }
    }
}
