//! The resident set at the markers of this process, for the statistics and `flarena top`, and the highest one between
//! two markers.
//!
//! The library's marker `exit` waits for no lock, so `PEAK` has none, and this marker is not noted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;
use serde_json::{json, Value};

use flarena_shared::marker::Marker;
use flarena_sys::sync::lock::Lock;

/// The statistics contain so many sizes, because these reach back before the first time that a reader asks.
const MAX_RECENT: usize = 12;
/// Further stages are not listed. A program has so many if it puts a step number into their names.
const MAX_STAGES: usize = 24;

static HISTORY: Lock<History> = Lock::new(History {
    pid: 0,
    recent: VecDeque::new(),
    stages: Vec::new(),
});
pub static PEAK: Peak = Peak::new();

#[derive(Default)]
struct History {
    /// A copied process has the history of its parent until it asks for its own.
    pid: u32,
    /// The sizes at the last markers, the oldest first.
    recent: VecDeque<u64>,
    /// In the order of their first markers.
    stages: Vec<StageSize>,
}

#[derive(Serialize)]
struct StageSize {
    stage: String,
    round: Option<i64>,
    rss_bytes: u64,
    highest_rss_bytes: u64,
}

impl History {
    fn note(&mut self, stage: &str, round: Option<i64>, rss_bytes: u64) {
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(rss_bytes);
        if let Some(known) = self.stages.iter_mut().find(|known| known.stage == stage) {
            known.round = round;
            known.rss_bytes = rss_bytes;
            known.highest_rss_bytes = known.highest_rss_bytes.max(rss_bytes);
        } else if self.stages.len() < MAX_STAGES {
            self.stages.push(StageSize {
                stage: stage.to_owned(),
                round,
                rss_bytes,
                highest_rss_bytes: rss_bytes,
            });
        }
    }
}

fn with_own<R>(act: impl FnOnce(&mut History) -> R) -> R {
    let (mut history, pid) = (HISTORY.lock(), std::process::id());
    if history.pid != pid {
        let own = History {
            pid,
            ..History::default()
        };
        // Not freed: the parent may have been writing it.
        std::mem::forget(std::mem::replace(&mut *history, own));
    }
    act(&mut history)
}

pub fn note(marker: &Marker) {
    if let Some(rss_bytes) = marker.rss_bytes {
        with_own(|history| history.note(&marker.stage, marker.round, rss_bytes));
    }
}

/// The last size; `None` before the first.
pub fn last() -> Option<u64> {
    with_own(|history| history.recent.back().copied())
}

/// The last sizes, the oldest first, and the sizes of the stages.
pub fn document() -> (Value, Value) {
    with_own(|history| (json!(history.recent), json!(history.stages)))
}

/// The child has its own markers.
///
/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    PEAK.reset();
    // SAFETY: as for this function.
    unsafe { HISTORY.reset_after_fork() };
}

/// The highest size since the last marker.
pub struct Peak {
    /// `VmHWM` at the last marker.
    hwm_bytes: AtomicU64,
    /// The highest size that the governor has measured after the last marker.
    watched_bytes: AtomicU64,
}

impl Peak {
    const fn new() -> Self {
        Peak {
            hwm_bytes: AtomicU64::new(0),
            watched_bytes: AtomicU64::new(0),
        }
    }

    fn reset(&self) {
        self.hwm_bytes.store(0, Relaxed);
        self.watched_bytes.store(0, Relaxed);
    }

    /// Notes a size between two markers.
    pub fn note_watched(&self, rss_bytes: u64) {
        self.watched_bytes.fetch_max(rss_bytes, Relaxed);
    }

    /// The highest known size, for the next marker. If `VmHWM` has not risen, the size stayed below it, and only the
    /// measured sizes are known.
    pub fn take(&self, rss_bytes: Option<u64>, hwm_bytes: Option<u64>) -> Option<u64> {
        let last_hwm = self.hwm_bytes.swap(hwm_bytes.unwrap_or(0), Relaxed);
        let risen = hwm_bytes.filter(|hwm| *hwm > last_hwm);
        let watched = self.watched_bytes.swap(0, Relaxed);
        let measured = rss_bytes.map(|rss| rss.max(watched));
        risen.max(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_keeps_the_last_dozen_sizes_oldest_first() {
        let mut history = History::default();
        (1..=3).for_each(|size| history.note("train", None, size));
        assert_eq!(history.recent, [1, 2, 3]);
        (4..=30).for_each(|size| history.note("train", None, size));
        assert_eq!(history.recent, (19..=30).collect::<Vec<u64>>());
    }

    #[test]
    fn each_of_the_first_stages_has_its_last_round_and_its_last_and_highest_size() {
        let mut history = History::default();
        history.note("train", Some(1), 50);
        history.note("send", None, 70);
        history.note("train", Some(2), 40);
        let expected = json!([
            {"stage": "train", "round": 2, "rss_bytes": 40, "highest_rss_bytes": 50},
            {"stage": "send", "round": null, "rss_bytes": 70, "highest_rss_bytes": 70},
        ]);
        assert_eq!(json!(history.stages), expected);
        (0..99).for_each(|step| history.note(&step.to_string(), None, 1));
        assert_eq!(history.stages.len(), MAX_STAGES);
    }

    #[test]
    fn copied_process_has_no_sizes_of_its_parent() {
        with_own(|history| history.note("train", Some(3), 5));
        assert_eq!(last(), Some(5));
        assert_eq!(document().0, json!([5]));
        HISTORY.lock().pid += 1;
        assert_eq!(last(), None);
        assert_eq!(document(), (json!([]), json!([])));
    }

    #[test]
    fn the_peak_is_vmhwm_if_that_rose_and_else_the_highest_size_that_was_measured() {
        let history = Peak::new();
        let peak = |rss: u64, hwm: u64| history.take(Some(rss), Some(hwm));
        assert_eq!(peak(50, 80), Some(80));
        assert_eq!(peak(50, 80), Some(50));
        history.note_watched(70);
        history.note_watched(60);
        assert_eq!(peak(50, 80), Some(70));
        assert_eq!(peak(50, 80), Some(50));
        history.note_watched(70);
        assert_eq!(peak(50, 90), Some(90));
        // The kernel counts late.
        assert_eq!(peak(95, 90), Some(95));
        assert_eq!(history.take(None, None), None);
        history.reset();
        assert_eq!(peak(40, 60), Some(60));
    }
}
