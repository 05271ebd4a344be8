//! Telling steady churn from phases: pages given back for the budget and faulted in again at once, for ever.
//!
//! A peak that rises and falls once per round gives pages back at its top and never misses them; a phase that turns
//! small blocks into large ones gives each page back once, while it faults in others. Churn at a constant size gives
//! the same pages back again and again, or moves them from block to block: that earns a larger tolerance, and fresh pages
//! instead of moves while it lasts. (So do two phases, with no pause between them, that both move all cached pages.)

use crate::core::amount::Pages;
use crate::policy::age::is_expired;

/// Long enough to see both sides, short against a round.
const WINDOW_MS: u32 = 50;
/// Without a page that goes or comes for so many windows, it was not churn.
const PAUSE: u64 = 4;
/// For so long after a window of churn the next is expected.
const STEADY_MS: u32 = 1000;
/// Churn: more than this share of the peak goes and comes back within a window, windows in a row, until together as
/// much as the whole peak did.
const BUSY_SHARE: u64 = 128;
/// The tolerance grows by this share of the scale per window, and up to the next.
const STEP_SHARE: u64 = 24;
const MOST_SHARE: u64 = 5;

#[derive(Clone, Copy, Debug)]
pub struct ChurnDetector {
    since_ms: u32,
    fresh: Pages,
    returned: Pages,
    /// What went and came back since the last window without churn.
    turnover: Pages,
    extra: Pages,
    /// The end of the last window that was churn.
    churned_ms: u32,
}

impl ChurnDetector {
    pub const fn new() -> Self {
        ChurnDetector {
            since_ms: 0,
            fresh: Pages::NONE,
            returned: Pages::NONE,
            turnover: Pages::NONE,
            extra: Pages::NONE,
            churned_ms: 0,
        }
    }

    /// Pages that may be held beyond the usual tolerance.
    pub fn extra_pages(&self) -> Pages {
        self.extra
    }

    /// It earned room, and a window was churn not long ago.
    pub fn is_steady(&self, now_ms: u32) -> bool {
        self.extra > Pages::NONE && !is_expired(now_ms, self.churned_ms, STEADY_MS)
    }

    /// Those of this window.
    #[cfg(test)]
    pub fn fresh_pages(&self) -> Pages {
        self.fresh
    }

    #[cfg(test)]
    pub fn returned_pages(&self) -> Pages {
        self.returned
    }

    /// Books pages that came and pages that went; what is earned are shares of `scale`.
    pub fn note(&mut self, now_ms: u32, fresh: Pages, returned: Pages, peak: Pages, scale: Pages) {
        let passed = now_ms.wrapping_sub(self.since_ms);
        if passed >= WINDOW_MS {
            self.close(now_ms, passed, peak, scale);
            self.since_ms = now_ms;
        }
        self.fresh += fresh;
        self.returned += returned;
    }

    /// Nothing was faulted in for a while: whatever was learnt is old.
    pub fn rest(&mut self) {
        *self = ChurnDetector {
            since_ms: self.since_ms,
            ..ChurnDetector::new()
        };
    }

    fn close(&mut self, now_ms: u32, passed_ms: u32, peak: Pages, scale: Pages) {
        let churned = self.fresh.min(self.returned);
        let windows = u64::from(passed_ms / WINDOW_MS);
        if windows <= PAUSE && churned > peak * windows / BUSY_SHARE {
            self.turnover += churned;
            self.churned_ms = now_ms;
            if self.turnover >= peak {
                self.extra = (self.extra + scale / STEP_SHARE).min(scale / MOST_SHARE);
            }
        } else {
            self.turnover = Pages::NONE;
        }
        (self.fresh, self.returned) = (Pages::NONE, Pages::NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAK: Pages = Pages::new(100_000);

    fn windows(churn: &mut ChurnDetector, from_ms: u32, count: u32, fresh: Pages, returned: Pages) {
        for window in 0..count {
            churn.note(from_ms + window * WINDOW_MS, fresh, returned, PEAK, PEAK);
        }
    }

    #[test]
    fn one_peak_earns_nothing() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 2, PEAK / 4, PEAK / 4);
        windows(&mut churn, 1100, 20, PEAK / 4, Pages::NONE);
        windows(&mut churn, 2100, 20, Pages::NONE, PEAK / 4);
        assert_eq!(churn.extra_pages(), Pages::NONE);
    }

    #[test]
    fn small_blocks_that_become_large_ones_earn_nothing() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 9, PEAK / 10, PEAK / 10);
        windows(&mut churn, 1800, 9, PEAK / 10, PEAK / 10);
        assert_eq!(churn.extra_pages(), Pages::NONE);
    }

    #[test]
    fn steady_churn_earns_room_up_to_a_bound() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 60, PEAK / 50, PEAK / 50);
        assert!(churn.extra_pages() > Pages::NONE);
        windows(&mut churn, 4000, 100, PEAK / 50, PEAK / 50);
        assert_eq!(churn.extra_pages(), PEAK / MOST_SHARE);
        churn.rest();
        assert_eq!(churn.extra_pages(), Pages::NONE);
    }

    #[test]
    fn churn_of_a_whole_peak_earns_one_step() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 50, PEAK / 50, PEAK / 50);
        assert_eq!(churn.extra_pages(), Pages::NONE);
        windows(&mut churn, 3500, 1, PEAK / 50, PEAK / 50);
        assert_eq!(churn.extra_pages(), PEAK / STEP_SHARE);
    }

    #[test]
    fn churn_may_pause_for_a_few_windows_and_no_longer() {
        for (pause, earns) in [(PAUSE, true), (PAUSE + 1, false)] {
            let mut churn = ChurnDetector::new();
            for round in 1..40 {
                let now_ms = round * pause as u32 * WINDOW_MS;
                churn.note(now_ms, PEAK / 20, PEAK / 20, PEAK, PEAK);
            }
            let earned = churn.extra_pages() > Pages::NONE;
            assert_eq!(earned, earns, "{pause} windows apart");
        }
    }

    #[test]
    fn churn_is_steady_for_a_second_after_it_earned_room() {
        let mut churn = ChurnDetector::new();
        windows(&mut churn, 1000, 50, PEAK / 50, PEAK / 50);
        assert!(!churn.is_steady(3450), "it earned nothing yet");
        windows(&mut churn, 3500, 1, PEAK / 50, PEAK / 50);
        assert!(churn.is_steady(3500 + STEADY_MS - 1));
        assert!(!churn.is_steady(3500 + STEADY_MS));
        // What it earned stays longer.
        assert_eq!(churn.extra_pages(), PEAK / STEP_SHARE);
    }

    #[test]
    fn nothing_at_all_is_no_churn_of_a_small_peak() {
        let mut churn = ChurnDetector::new();
        let small = Pages::new(100);
        for window in 0..60 {
            let pages = if window < 3 { small } else { Pages::NONE };
            churn.note(1000 + window * WINDOW_MS, pages, pages, small, small);
        }
        assert_eq!(churn.extra_pages(), small / STEP_SHARE * 3);
    }
}
