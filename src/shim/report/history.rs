//! The resident set at the last markers, and the highest one since the last marker.
//!
//! Each marker writes a slot of its own. With markers of several threads at once, a reader may see
//! two sizes swapped, which does not matter in a list of a dozen.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const KEPT: usize = 12;

pub static HISTORY: History = History::new();

/// The statistics contain it, because it reaches back before the first time that a reader asks.
pub struct History {
    /// Sizes noted so far. Modulo `KEPT` it is the next slot.
    noted: AtomicUsize,
    sizes: [AtomicU64; KEPT],
    /// `VmHWM` at the last marker.
    hwm_bytes: AtomicU64,
    /// The highest size that the governor has measured after the last marker.
    watched_bytes: AtomicU64,
}

impl History {
    const fn new() -> Self {
        Self {
            noted: AtomicUsize::new(0),
            sizes: [const { AtomicU64::new(0) }; KEPT],
            hwm_bytes: AtomicU64::new(0),
            watched_bytes: AtomicU64::new(0),
        }
    }

    /// The child counts its own markers.
    pub fn after_fork_in_child(&self) {
        self.noted.store(0, Relaxed);
        self.hwm_bytes.store(0, Relaxed);
        self.watched_bytes.store(0, Relaxed);
    }

    pub fn note(&self, rss_bytes: u64) {
        let slot = self.noted.fetch_add(1, Relaxed) % KEPT;
        self.sizes[slot].store(rss_bytes, Relaxed);
    }

    /// The last size; `None` before the first.
    pub fn last(&self) -> Option<u64> {
        let slot = self.noted.load(Relaxed).checked_sub(1)?;
        Some(self.sizes[slot % KEPT].load(Relaxed))
    }

    /// The sizes, the oldest first.
    pub fn sizes(&self) -> Vec<u64> {
        let noted = self.noted.load(Relaxed);
        let slots = noted.saturating_sub(KEPT)..noted;
        let size = |slot: usize| self.sizes[slot % KEPT].load(Relaxed);
        slots.map(size).collect()
    }

    /// Notes a size between two markers.
    pub fn note_watched(&self, rss_bytes: u64) {
        self.watched_bytes.fetch_max(rss_bytes, Relaxed);
    }

    /// The highest known size since the last marker, for the next one. If `VmHWM` has not risen, the size stayed below
    /// it, and only what was measured is known.
    pub fn take_peak(&self, rss_bytes: Option<u64>, hwm_bytes: Option<u64>) -> Option<u64> {
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
        let history = History::new();
        assert!(history.sizes().is_empty() && history.last().is_none());
        (1..=3).for_each(|size| history.note(size));
        assert_eq!(history.sizes(), [1, 2, 3]);
        (4..=30).for_each(|size| history.note(size));
        assert_eq!(history.sizes(), (19..=30).collect::<Vec<u64>>());
        assert_eq!(history.last(), Some(30));
    }

    #[test]
    fn the_peak_is_vmhwm_if_that_rose_and_else_the_highest_size_that_was_measured() {
        let history = History::new();
        let peak = |rss: u64, hwm: u64| history.take_peak(Some(rss), Some(hwm));
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
        assert_eq!(history.take_peak(None, None), None);
        history.after_fork_in_child();
        assert_eq!(peak(40, 60), Some(60));
    }
}
