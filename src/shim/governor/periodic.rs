//! Periodic markers for programs that pass no stages: NVFlare's parent processes, and any other
//! program.

use std::time::{Duration, Instant};

use flarena_shared::backoff::Backoff;
use flarena_shared::stages::Stage;

use crate::report::mark;
use flarena_sys::proc::procfs;

/// The first marker shows the size after the start.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const SHORTEST_PAUSE: Duration = Duration::from_secs(60);
/// A process of constant size also gets a marker each hour, which shows that it is flat.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

pub struct Periodic {
    marked_at: Instant,
    pause: Backoff<Duration>,
    /// At the last marker.
    resident_bytes: u64,
}

impl Periodic {
    pub fn new(now: Instant) -> Periodic {
        Periodic {
            marked_at: now,
            pause: Backoff::between(SHORTEST_PAUSE, LONGEST_PAUSE).starting_at(FIRST_PAUSE),
            resident_bytes: 0,
        }
    }

    pub fn mark_if_due(&mut self, now: Instant) {
        if !self.may_be_due(now) || !mark::lacks_stages() {
            return;
        }
        let pages = procfs::resident_pages().unwrap_or(0);
        if self.is_due(now, pages * procfs::page_bytes() as u64) {
            mark::event(Stage::Periodic);
        }
    }

    /// False while not even a change of the size would make a marker due. Saves reading the size.
    fn may_be_due(&self, now: Instant) -> bool {
        now.duration_since(self.marked_at) >= self.pause.value().min(SHORTEST_PAUSE)
    }

    fn is_due(&mut self, now: Instant, resident_bytes: u64) -> bool {
        if is_change(self.resident_bytes, resident_bytes) {
            self.pause.set_shortest();
        } else if now.duration_since(self.marked_at) >= self.pause.value() {
            self.pause.lengthen();
        } else {
            return false;
        }
        (self.marked_at, self.resident_bytes) = (now, resident_bytes);
        true
    }
}

/// More than a hundredth, and more than a few small blocks.
fn is_change(before: u64, after: u64) -> bool {
    before.abs_diff(after) > (before / 100).max(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minutes at which a process gets a marker. `megabytes` is its size in each minute.
    fn minutes_of_markers(megabytes: impl Fn(u64) -> u64, minutes: u64) -> Vec<u64> {
        let start = Instant::now();
        let mut periodic = Periodic::new(start);
        let at = |minute: u64| start + minute as u32 * SHORTEST_PAUSE;
        let mut due = |minute: u64| periodic.is_due(at(minute), megabytes(minute) << 20);
        (1..=minutes).filter(|&minute| due(minute)).collect()
    }

    #[test]
    fn a_process_that_grows_gets_a_marker_every_minute() {
        assert_eq!(
            minutes_of_markers(|minute| 100 + 2 * minute, 5),
            [1, 2, 3, 4, 5]
        );
    }

    #[test]
    fn a_process_of_constant_size_gets_rarer_markers_but_one_each_hour() {
        assert_eq!(
            minutes_of_markers(|_| 100, 200),
            [1, 2, 4, 8, 16, 32, 64, 124, 184]
        );
    }

    #[test]
    fn a_change_after_a_long_pause_gets_a_marker_at_once() {
        let size = |minute| if minute < 50 { 100 } else { 300 };
        assert_eq!(minutes_of_markers(size, 52), [1, 2, 4, 8, 16, 32, 50, 51]);
    }

    #[test]
    fn the_size_is_read_after_five_seconds_and_then_at_most_once_a_minute() {
        let start = Instant::now();
        let mut periodic = Periodic::new(start);
        assert!(!periodic.may_be_due(start + FIRST_PAUSE - Duration::from_nanos(1)));
        assert!(periodic.may_be_due(start + FIRST_PAUSE));
        let mut marked_at = start + FIRST_PAUSE;
        for _ in 0..3 {
            assert!(periodic.is_due(marked_at, 0));
            assert!(!periodic.may_be_due(marked_at + SHORTEST_PAUSE - Duration::from_nanos(1)));
            assert!(periodic.may_be_due(marked_at + SHORTEST_PAUSE));
            marked_at += LONGEST_PAUSE;
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
