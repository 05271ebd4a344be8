//! What was resident at the last markers, for `flarena top`: what it draws reaches further back than its own looks.
//!
//! Markers of several threads write at once, each a slot of its own; a reader may then see two of them the other way
//! around, which a picture of a dozen sizes can bear.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const KEPT: usize = 12;

static HISTORY: History = History::new();

struct History {
    /// Sizes noted so far; the next one goes to this slot, around the end.
    noted: AtomicUsize,
    sizes: [AtomicU64; KEPT],
}

pub fn note(rss_bytes: u64) {
    HISTORY.note(rss_bytes);
}

/// The oldest first.
pub fn sizes() -> Vec<u64> {
    HISTORY.sizes()
}

/// The child is another process, with markers of its own.
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
    fn the_last_dozen_is_kept_the_oldest_first() {
        let history = History::new();
        assert!(history.sizes().is_empty());
        (1..=3).for_each(|size| history.note(size));
        assert_eq!(history.sizes(), [1, 2, 3]);
        (4..=30).for_each(|size| history.note(size));
        assert_eq!(history.sizes(), (19..=30).collect::<Vec<u64>>());
    }
}
