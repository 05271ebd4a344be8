//! What only a library's own interface knows, as the Python package told it at the last mark.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// There is no such pool.
const NONE: usize = usize::MAX;

static ARROW_BYTES: AtomicUsize = AtomicUsize::new(NONE);
static PINNED_BYTES: AtomicUsize = AtomicUsize::new(NONE);

/// The body of `flarena_note_pools`.
pub fn note(arrow_bytes: usize, pinned_bytes: usize) {
    ARROW_BYTES.store(arrow_bytes, Relaxed);
    PINNED_BYTES.store(pinned_bytes, Relaxed);
}

/// Arrow's pool, and memory that is pinned for a device.
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
    fn a_pool_that_is_not_there_holds_nothing_that_is_known() {
        assert_eq!(last(), (None, None));
        note(7, NONE);
        assert_eq!(last(), (Some(7), None));
        note(NONE, 0);
        assert_eq!(last(), (None, Some(0)));
    }
}
