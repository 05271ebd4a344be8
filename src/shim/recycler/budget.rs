//! The budget: caching never raises the peak.
//!
//! Live, slack, cached and moving pages together never exceed the highest live seen, plus a tolerance
//! that spares steady churn the give-back and refault of the same few pages.

use super::thrash::Thrash;

#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub live_blocks: u64,
    /// Pages handed out.
    pub live: u64,
    /// Pages in the last units of live blocks, beyond what these need.
    pub slack: u64,
    pub cached: u64,
    /// Pages in the hands of a thread that moves or returns them.
    pub moving: u64,
    pub peak_live: u64,
}

impl Counters {
    pub fn footprint(&self) -> u64 {
        self.live + self.slack + self.cached + self.moving
    }

    pub fn add_live(&mut self, pages: u64) {
        self.live += pages;
        self.peak_live = self.peak_live.max(self.live);
    }

    /// True when a block of fresh pages needs no page given back, nor more than the least tolerance.
    pub fn may_grow(&self, pages: u64, tolerance: &Tolerance) -> bool {
        let spare = tolerance
            .pages(self.peak_live)
            .min(FLOOR_BYTES >> tolerance.page_shift);
        self.footprint() + pages <= self.peak_live.max(self.live + pages) + spare
    }

    /// Pages to give back now.
    pub fn excess(&self, tolerance: &Tolerance) -> u64 {
        let allowed = self.peak_live + tolerance.pages(self.peak_live);
        self.footprint()
            .saturating_sub(allowed)
            .min(self.cached + self.slack)
    }
}

/// The share of the peak that may be exceeded: 1/50, measured (docs/measurements.md).
const SHARE: u64 = 50;
const FLOOR_BYTES: u64 = 32 << 20;

#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub page_shift: u32,
    /// Bytes the process may use, when that is known.
    pub memory_limit: Option<u64>,
    pub near_limit: bool,
    /// Earned by churn.
    pub thrash: Thrash,
}

impl Tolerance {
    /// Nothing near the limit; else the share of the peak, but no more than a part of what the limit leaves.
    pub fn pages(&self, peak_live: u64) -> u64 {
        if self.near_limit {
            return 0;
        }
        let least = (peak_live / SHARE).max(FLOOR_BYTES >> self.page_shift);
        let free_hand = least + self.thrash.extra_pages();
        match self.memory_limit {
            None => free_hand,
            Some(limit) => {
                let comfortable = (limit >> self.page_shift) / 4 * 3;
                free_hand.min(comfortable.saturating_sub(peak_live) / 8)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 256;

    fn tolerance(memory_limit: Option<u64>, near_limit: bool) -> Tolerance {
        Tolerance {
            page_shift: 12,
            memory_limit,
            near_limit,
            thrash: Thrash::new(),
        }
    }

    #[test]
    fn the_tolerance_has_a_floor_and_grows_with_the_peak() {
        assert_eq!(tolerance(None, false).pages(0), 32 * MIB);
        assert_eq!(tolerance(None, false).pages(3200 * MIB), 64 * MIB);
    }

    #[test]
    fn the_tolerance_vanishes_near_a_limit() {
        assert_eq!(tolerance(None, true).pages(1600 * MIB), 0);
        assert_eq!(tolerance(Some(1 << 30), false).pages(900 * MIB), 0);
        assert_eq!(tolerance(Some(1 << 30), false).pages(704 * MIB), 8 * MIB);
    }

    #[test]
    fn the_excess_is_never_more_than_what_can_be_given_back() {
        let mut counters = Counters::default();
        counters.add_live(100 * MIB);
        assert_eq!(counters.excess(&tolerance(None, true)), 0);
        counters.cached = 10 * MIB;
        assert_eq!(counters.excess(&tolerance(None, true)), 10 * MIB);
        assert_eq!(counters.excess(&tolerance(None, false)), 0);
    }
}
