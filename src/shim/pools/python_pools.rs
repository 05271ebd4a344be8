//! Sizes of pools that only their library's Python interface reports. The Python package passes
//! them at each marker.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The process has no such pool.
const NONE: usize = usize::MAX;

static ARROW_BYTES: AtomicUsize = AtomicUsize::new(NONE);
static PINNED_BYTES: AtomicUsize = AtomicUsize::new(NONE);

/// The body of `flarena_note_pools`.
pub fn note(arrow_bytes: usize, pinned_bytes: usize) {
    ARROW_BYTES.store(arrow_bytes, Relaxed);
    PINNED_BYTES.store(pinned_bytes, Relaxed);
}

/// Bytes in Arrow's pool, and in memory that is pinned for a device. `None`: unknown.
pub fn last() -> (Option<u64>, Option<u64>) {
    let read = |bytes: &AtomicUsize| match bytes.load(Relaxed) {
        NONE => None,
        bytes => Some(bytes as u64),
    };
    (read(&ARROW_BYTES), read(&PINNED_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_does_not_exist_has_no_size() {
        assert_eq!(last(), (None, None));
        note(7, NONE);
        assert_eq!(last(), (Some(7), None));
        note(NONE, 0);
        assert_eq!(last(), (None, Some(0)));
    }
}
