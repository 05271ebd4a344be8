//! Periodic markers: they show what happens to the resident size between two markers of the program,
//! and in programs that write none. [`Periodic`] is pure: times and sizes in, a decision out.

use std::time::{Duration, Instant};

use flarena_shared::backoff::Backoff;
use flarena_shared::stages::Stage;

use crate::report::{history, mark};
use flarena_sys::proc::procfs;

/// A size that changed gets a marker after this time.
const SHORTEST_PAUSE: Duration = Duration::from_secs(60);
/// A process of constant size also gets a marker each hour, which shows that it is flat.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// A new highest size gets a marker after this time.
const PEAK_PAUSE: Duration = Duration::from_millis(1500);

pub struct Periodic {
    /// Of the last marker, of any stage.
    marked_at: Instant,
    resident_bytes: u64,
    /// The highest size in a marker.
    highest_bytes: u64,
    /// The time to the next marker of a process of constant size.
    pause: Backoff<Duration>,
    was_near_limit: bool,
    /// The number of markers that the process has written.
    markers: u64,
}

impl Periodic {
    pub fn new(now: Instant) -> Periodic {
        Periodic {
            marked_at: now,
            resident_bytes: 0,
            highest_bytes: 0,
            pause: Backoff::between(SHORTEST_PAUSE, LONGEST_PAUSE),
            was_near_limit: false,
            markers: 0,
        }
    }

    pub fn mark_if_due(&mut self, now: Instant, near_limit: bool) {
        if !mark::is_on_here() {
            return;
        }
        if mark::written() != self.markers {
            self.marked(now, history::last().unwrap_or(0));
        }
        let resident_bytes = procfs::resident_bytes().unwrap_or(0);
        history::PEAK.note_watched(resident_bytes);
        if self.is_due(now, resident_bytes, near_limit) {
            mark::event(Stage::Periodic);
        }
        self.markers = mark::written();
    }

    fn is_due(&mut self, now: Instant, resident_bytes: u64, near_limit: bool) -> bool {
        let comes_near = near_limit && !self.was_near_limit;
        self.was_near_limit = near_limit;
        let elapsed = now.duration_since(self.marked_at);
        // The step is a share of the size, so a process that grows to twice its size gets about 15 markers, at any speed.
        let (share, least_bytes) = match near_limit {
            true => (100, 4 << 20),
            false => (20, 16 << 20),
        };
        let step = (self.highest_bytes / share).max(least_bytes);
        let is_peak = resident_bytes > self.highest_bytes + step;
        if comes_near || (is_peak && elapsed >= PEAK_PAUSE) {
            self.pause.set_shortest();
        } else if elapsed < self.pause.value().min(SHORTEST_PAUSE) {
            return false;
        } else if is_change(self.resident_bytes, resident_bytes) {
            self.pause.set_shortest();
        } else if elapsed >= self.pause.value() {
            self.pause.lengthen();
        } else {
            return false;
        }
        self.marked(now, resident_bytes);
        true
    }

    fn marked(&mut self, now: Instant, resident_bytes: u64) {
        self.marked_at = now;
        self.resident_bytes = resident_bytes;
        self.highest_bytes = self.highest_bytes.max(resident_bytes);
    }
}

/// More than a hundredth, and more than a few small blocks.
fn is_change(before: u64, after: u64) -> bool {
    before.abs_diff(after) > (before / 100).max(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a process gets a marker. `megabytes` is its size in each second.
    fn seconds_of_markers(megabytes: impl Fn(u64) -> u64, seconds: u64) -> Vec<u64> {
        let start = Instant::now();
        let mut periodic = Periodic::new(start);
        let at = |second: u64| start + Duration::from_secs(second);
        let mut due = |second: u64| periodic.is_due(at(second), megabytes(second) << 20, false);
        (1..=seconds).filter(|&second| due(second)).collect()
    }

    /// The same in minutes.
    fn minutes_of_markers(megabytes: impl Fn(u64) -> u64, minutes: u64) -> Vec<u64> {
        let seconds = seconds_of_markers(|second| megabytes(second / 60), 60 * minutes);
        seconds.into_iter().map(|second| second / 60).collect()
    }

    #[test]
    fn a_process_that_grows_slowly_gets_a_marker_every_minute() {
        let markers = seconds_of_markers(|second| 1000 + second / 5, 300);
        assert_eq!(markers, [2, 62, 122, 182, 242]);
    }

    #[test]
    fn a_process_of_constant_size_gets_rarer_markers_but_one_each_hour() {
        assert_eq!(
            minutes_of_markers(|_| 100, 200),
            [0, 1, 3, 7, 15, 31, 63, 123, 183]
        );
    }

    #[test]
    fn a_change_after_a_long_pause_gets_a_marker_at_once() {
        let size = |minute| if minute < 50 { 300 } else { 100 };
        assert_eq!(minutes_of_markers(size, 52), [0, 1, 3, 7, 15, 31, 50, 51]);
    }

    #[test]
    fn fast_growth_gets_a_marker_within_two_seconds_and_their_number_is_limited() {
        let markers = seconds_of_markers(|second| 10 * second, 80);
        assert!(markers.windows(2).all(|pair| pair[1] - pair[0] <= 4));
        assert_eq!(markers.first(), Some(&2));
        let markers = seconds_of_markers(|second| 100 * second, 80);
        assert!((20..=40).contains(&markers.len()), "{markers:?}");
    }

    #[test]
    fn a_size_that_swings_below_its_highest_gets_a_marker_a_minute() {
        let swings = |second| if second % 2 == 0 { 1000 } else { 500 };
        assert!(seconds_of_markers(swings, 600).len() <= 12);
    }

    #[test]
    fn coming_near_a_limit_gets_a_marker_at_once_and_a_smaller_rise_one_too() {
        let start = Instant::now();
        let mut periodic = Periodic::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        periodic.marked(start, 900 << 20);
        assert!(!periodic.is_due(at(250), 905 << 20, false));
        assert!(periodic.is_due(at(500), 910 << 20, true));
        assert!(!periodic.is_due(at(750), 915 << 20, true));
        assert!(periodic.is_due(at(2000), 920 << 20, true));
        assert!(!periodic.is_due(at(9000), 921 << 20, true));
    }

    #[test]
    fn a_marker_of_the_program_counts() {
        let start = Instant::now();
        let mut periodic = Periodic::new(start);
        for minute in 1..=5 {
            let now = start + minute * SHORTEST_PAUSE;
            periodic.marked(now - Duration::from_secs(1), 100 << 20);
            assert!(!periodic.is_due(now, 102 << 20, false));
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
