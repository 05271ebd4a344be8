//! The resident set at the last markers. `flarena top` draws it, because it reaches back before the
//! first time that `top` asks.
//!
//! Each marker writes a slot of its own. With markers of several threads at once, a reader may see
//! two sizes swapped, which does not matter in a chart of a dozen.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const KEPT: usize = 12;

static HISTORY: History = History::new();

struct History {
    /// Sizes noted so far. Modulo `KEPT` it is the next slot.
    noted: AtomicUsize,
    sizes: [AtomicU64; KEPT],
}

pub fn note(rss_bytes: u64) {
    HISTORY.note(rss_bytes);
}

/// The sizes, the oldest first.
pub fn sizes() -> Vec<u64> {
    HISTORY.sizes()
}

/// The last size; `None` before the first.
pub fn last() -> Option<u64> {
    HISTORY.last()
}

/// The child counts its own markers.
pub fn after_fork_in_child() {
    HISTORY.noted.store(0, Relaxed);
}

impl History {
    const fn new() -> Self {
        Self {
            noted: AtomicUsize::new(0),
            sizes: [const { AtomicU64::new(0) }; KEPT],
        }
    }

    fn note(&self, rss_bytes: u64) {
        let slot = self.noted.fetch_add(1, Relaxed) % KEPT;
        self.sizes[slot].store(rss_bytes, Relaxed);
    }

    fn last(&self) -> Option<u64> {
        let slot = self.noted.load(Relaxed).checked_sub(1)?;
        Some(self.sizes[slot % KEPT].load(Relaxed))
    }

    fn sizes(&self) -> Vec<u64> {
        let noted = self.noted.load(Relaxed);
        let slots = noted.saturating_sub(KEPT)..noted;
        let size = |slot: usize| self.sizes[slot % KEPT].load(Relaxed);
        slots.map(size).collect()
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
}
