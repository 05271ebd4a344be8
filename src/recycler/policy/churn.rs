//! Detects churn: the same pages are purged for the budget and faulted back in, again and again.
//!
//! Time is divided into windows of 50 ms. A window is churn if many pages are both purged and
//! faulted in. Churn that turns over as many pages as the peak raises the tolerance step by step,
//! and allocations then prefer fresh pages to moves. A round of training purges its pages once per
//! round, and a phase that turns small blocks into large ones purges each page once: neither is
//! churn. (Two phases without a pause between them that both move all cached pages count as churn.)

use crate::core::geometry::Pages;
use crate::policy::age::is_expired;

/// Long enough for a purge and the fault that follows it, and short compared with a round.
const WINDOW_MS: u32 = 50;
/// A window that stays open for more than this many windows' time is not churn.
const MAX_PAUSE_WINDOWS: u64 = 4;
/// Churn counts as steady for this long after the last window of churn.
const STEADY_MS: u32 = 1000;
/// A window is churn if more than one page in `CHURN_SHARE` of the peak is purged and faulted in.
const CHURN_SHARE: u64 = 128;
/// The extra tolerance grows by one part in `STEP_SHARE` of the scale per window, up to one part
/// in `MAX_SHARE`.
const STEP_SHARE: u64 = 24;
const MAX_SHARE: u64 = 5;

#[derive(Clone, Copy, Debug)]
pub struct ChurnDetector {
    window_start_ms: u32,
    /// Pages faulted in during this window.
    fresh: Pages,
    /// Pages purged during this window.
    purged: Pages,
    /// Pages purged and faulted in since the last window without churn.
    turnover: Pages,
    extra: Pages,
    /// The end of the last window that was churn.
    last_churn_ms: u32,
}

impl ChurnDetector {
    pub const fn new() -> Self {
        ChurnDetector {
            window_start_ms: 0,
            fresh: Pages::NONE,
            purged: Pages::NONE,
            turnover: Pages::NONE,
            extra: Pages::NONE,
            last_churn_ms: 0,
        }
    }

    /// Pages that churn adds to the tolerance.
    pub fn extra_pages(&self) -> Pages {
        self.extra
    }

    /// True if churn has raised the tolerance, and the last window of churn ended less than
    /// `STEADY_MS` ago.
    pub fn is_steady(&self, now_ms: u32) -> bool {
        self.extra > Pages::NONE && !is_expired(now_ms, self.last_churn_ms, STEADY_MS)
    }

    /// Pages faulted in during this window.
    #[cfg(test)]
    pub fn fresh_pages(&self) -> Pages {
        self.fresh
    }

    /// Pages purged during this window.
    #[cfg(test)]
    pub fn purged_pages(&self) -> Pages {
        self.purged
    }

    /// Records pages that were faulted in and pages that were purged. `scale` is the size of which
    /// the extra tolerance is a share.
    pub fn record(&mut self, now_ms: u32, fresh: Pages, purged: Pages, peak: Pages, scale: Pages) {
        let elapsed_ms = now_ms.wrapping_sub(self.window_start_ms);
        if elapsed_ms >= WINDOW_MS {
            self.close_window(now_ms, elapsed_ms, peak, scale);
            self.window_start_ms = now_ms;
        }
        self.fresh += fresh;
        self.purged += purged;
    }

    /// Drops the extra tolerance. Called when the recycler holds no free pages.
    pub fn reset(&mut self) {
        *self = ChurnDetector {
            window_start_ms: self.window_start_ms,
            ..ChurnDetector::new()
        };
    }

    fn close_window(&mut self, now_ms: u32, elapsed_ms: u32, peak: Pages, scale: Pages) {
        let churned = self.fresh.min(self.purged);
        let windows = u64::from(elapsed_ms / WINDOW_MS);
        if windows <= MAX_PAUSE_WINDOWS && churned > peak * windows / CHURN_SHARE {
            self.turnover += churned;
            self.last_churn_ms = now_ms;
            if self.turnover >= peak {
                self.extra = (self.extra + scale / STEP_SHARE).min(scale / MAX_SHARE);
            }
        } else {
            self.turnover = Pages::NONE;
        }
        (self.fresh, self.purged) = (Pages::NONE, Pages::NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAK: Pages = Pages::new(100_000);

    fn windows(churn: &mut ChurnDetector, from_ms: u32, count: u32, fresh: Pages, purged: Pages) {
        for window in 0..count {
            churn.record(from_ms + window * WINDOW_MS, fresh, purged, PEAK, PEAK);
        }
    }

    #[test]
    fn one_peak_adds_no_tolerance() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 2, PEAK / 4, PEAK / 4);
        windows(&mut churn, 1100, 20, PEAK / 4, Pages::NONE);
        windows(&mut churn, 2100, 20, Pages::NONE, PEAK / 4);
        assert_eq!(churn.extra_pages(), Pages::NONE);
    }

    #[test]
    fn small_blocks_that_become_large_ones_add_no_tolerance() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 9, PEAK / 10, PEAK / 10);
        windows(&mut churn, 1800, 9, PEAK / 10, PEAK / 10);
        assert_eq!(churn.extra_pages(), Pages::NONE);
    }

    #[test]
    fn steady_churn_raises_the_tolerance_up_to_a_bound() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 60, PEAK / 50, PEAK / 50);
        assert!(churn.extra_pages() > Pages::NONE);
        windows(&mut churn, 4000, 100, PEAK / 50, PEAK / 50);
        assert_eq!(churn.extra_pages(), PEAK / MAX_SHARE);
        churn.reset();
        assert_eq!(churn.extra_pages(), Pages::NONE);
    }

    #[test]
    fn churn_of_a_whole_peak_adds_one_step() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 50, PEAK / 50, PEAK / 50);
        assert_eq!(churn.extra_pages(), Pages::NONE);
        windows(&mut churn, 3500, 1, PEAK / 50, PEAK / 50);
        assert_eq!(churn.extra_pages(), PEAK / STEP_SHARE);
    }

    #[test]
    fn churn_may_pause_for_four_windows_and_no_longer() {
        for (pause, expected) in [(MAX_PAUSE_WINDOWS, true), (MAX_PAUSE_WINDOWS + 1, false)] {
            let mut churn = ChurnDetector::new();
            for round in 1..40 {
                let now_ms = round * pause as u32 * WINDOW_MS;
                churn.record(now_ms, PEAK / 20, PEAK / 20, PEAK, PEAK);
            }
            let is_raised = churn.extra_pages() > Pages::NONE;
            assert_eq!(is_raised, expected, "{pause} windows apart");
        }
    }

    #[test]
    fn churn_is_steady_for_a_second_after_it_raised_the_tolerance() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 50, PEAK / 50, PEAK / 50);
        assert!(!churn.is_steady(3450), "the tolerance is not raised yet");
        windows(&mut churn, 3500, 1, PEAK / 50, PEAK / 50);
        assert!(churn.is_steady(3500 + STEADY_MS - 1));
        assert!(!churn.is_steady(3500 + STEADY_MS));
        // The extra tolerance stays longer.
        assert_eq!(churn.extra_pages(), PEAK / STEP_SHARE);
    }

    #[test]
    fn windows_without_pages_are_no_churn_of_a_small_peak() {
        let mut churn = ChurnDetector::new();
        let small = Pages::new(100);
        for window in 0..60 {
            let pages = if window < 3 { small } else { Pages::NONE };
            churn.record(1000 + window * WINDOW_MS, pages, pages, small, small);
        }
        assert_eq!(churn.extra_pages(), small / STEP_SHARE * 3);
    }
}
