//! A history for processes that mark no stage by themselves: NVFlare's parents, any other program.

use std::time::{Duration, Instant};

use flarena_shared::stages::Stage;

use crate::report::mark;
use flarena_sys::proc::procfs;

/// What a process grew to while it started is worth an early look.
const FIRST: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_secs(60);
/// Every so often also a process that stands still says so: that it is flat is news, too.
const LONGEST: Duration = Duration::from_secs(3600);

/// When the next marker is due. The governor's looks are far closer together.
pub struct Periodic {
    marked_at: Instant,
    pause: Duration,
    resident_bytes: u64,
}

impl Periodic {
    pub fn new(now: Instant) -> Periodic {
        Periodic {
            marked_at: now,
            pause: FIRST,
            resident_bytes: 0,
        }
    }

    /// Marks if it is time.
    pub fn look(&mut self, now: Instant) {
        if !self.may_be_due(now) || !mark::lacks_stages() {
            return;
        }
        let pages = procfs::resident_pages().unwrap_or(0);
        if self.is_due(now, pages * procfs::page_bytes() as u64) {
            mark::event(Stage::Periodic);
        }
    }

    /// Before that the size of the process is not asked for.
    fn may_be_due(&self, now: Instant) -> bool {
        now.duration_since(self.marked_at) >= self.pause.min(SHORTEST)
    }

    fn is_due(&mut self, now: Instant, resident_bytes: u64) -> bool {
        let changed = is_change(self.resident_bytes, resident_bytes);
        if !changed && now.duration_since(self.marked_at) < self.pause {
            return false;
        }
        self.pause = match changed {
            true => SHORTEST,
            false => (2 * self.pause).clamp(SHORTEST, LONGEST),
        };
        (self.marked_at, self.resident_bytes) = (now, resident_bytes);
        true
    }
}

/// More than a hundredth, and more than what a few small blocks can do.
fn is_change(before: u64, after: u64) -> bool {
    before.abs_diff(after) > (before / 100).max(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minutes at which a process of this size in each minute is marked.
    fn marked(megabytes: impl Fn(u64) -> u64, minutes: u64) -> Vec<u64> {
        let start = Instant::now();
        let mut periodic = Periodic::new(start);
        let at = |minute: u64| start + minute as u32 * SHORTEST;
        let mut due = |minute: u64| periodic.is_due(at(minute), megabytes(minute) << 20);
        (1..=minutes).filter(|&minute| due(minute)).collect()
    }

    #[test]
    fn a_process_that_changes_is_marked_every_minute() {
        assert_eq!(marked(|minute| 100 + 2 * minute, 5), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn one_that_stands_still_is_marked_ever_more_rarely_and_every_hour_at_least() {
        assert_eq!(marked(|_| 100, 200), [1, 2, 4, 8, 16, 32, 64, 124, 184]);
    }

    #[test]
    fn a_change_after_a_long_stillness_is_marked_at_once() {
        let size = |minute| if minute < 50 { 100 } else { 300 };
        assert_eq!(marked(size, 52), [1, 2, 4, 8, 16, 32, 50, 51]);
    }

    #[test]
    fn a_process_is_looked_at_after_five_seconds_and_then_after_a_minute_at_the_earliest() {
        let start = Instant::now();
        let mut periodic = Periodic::new(start);
        assert!(!periodic.may_be_due(start + FIRST - Duration::from_nanos(1)));
        assert!(periodic.may_be_due(start + FIRST));
        let mut marked_at = start + FIRST;
        for _ in 0..3 {
            assert!(periodic.is_due(marked_at, 0));
            assert!(!periodic.may_be_due(marked_at + SHORTEST - Duration::from_nanos(1)));
            assert!(periodic.may_be_due(marked_at + SHORTEST));
            marked_at += LONGEST;
        }
    }

    #[test]
    fn a_change_is_more_than_a_hundredth_and_more_than_a_mebibyte() {
        for (before, bound) in [(0, 1 << 20), (50 << 20, 1 << 20), (1000 << 20, 10 << 20)] {
            assert!(!is_change(before, before + bound), "{before}");
            assert!(is_change(before, before + bound + 1), "{before}");
        }
        assert!(is_change(100 << 20, 90 << 20));
    }
}
