//! Full garbage collections, as the collector of the program's language tells of them: how many,
//! what they released of the large blocks, and what they took. Python's collector counts objects;
//! this is what lets it count bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flarena_recycler as recycler;

static COLLECTIONS: AtomicU64 = AtomicU64::new(0);
static RELEASED_BYTES: AtomicU64 = AtomicU64::new(0);
static SPENT_US: AtomicU64 = AtomicU64::new(0);
static LIVE_AFTER_BYTES: AtomicU64 = AtomicU64::new(0);
/// What the markers so far have told.
static TOLD_BYTES: AtomicU64 = AtomicU64::new(0);
static TOLD_MS: AtomicU64 = AtomicU64::new(0);

/// All collections since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    pub collections: u64,
    pub released_bytes: u64,
    pub ms: u64,
    /// What large blocks held after the last one.
    pub live_after_bytes: u64,
}

/// What collections did between two markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    pub released_bytes: u64,
    pub ms: u64,
}

/// The body of `flarena_large_live_bytes`.
pub fn large_live_bytes() -> usize {
    recycler::live_bytes() as usize
}

/// The body of `flarena_note_collection`.
pub fn note(released_bytes: u64, microseconds: u64) {
    RELEASED_BYTES.fetch_add(released_bytes, Relaxed);
    SPENT_US.fetch_add(microseconds, Relaxed);
    LIVE_AFTER_BYTES.store(recycler::live_bytes(), Relaxed);
    COLLECTIONS.fetch_add(1, Relaxed);
}

pub fn total() -> Total {
    Total {
        collections: COLLECTIONS.load(Relaxed),
        released_bytes: RELEASED_BYTES.load(Relaxed),
        ms: SPENT_US.load(Relaxed) / 1000,
        live_after_bytes: LIVE_AFTER_BYTES.load(Relaxed),
    }
}

/// For the next marker, and told to no other; `None` where nobody ever told of a collection.
pub fn take_since_last_marker() -> Option<Since> {
    let total = total();
    (total.collections > 0).then(|| Since {
        released_bytes: rise(&TOLD_BYTES, total.released_bytes),
        ms: rise(&TOLD_MS, total.ms),
    })
}

/// Two threads may mark at once: each rise is told by one of them.
fn rise(told: &AtomicU64, total: u64) -> u64 {
    total.saturating_sub(told.fetch_max(total, Relaxed))
}

/// The child is another process: it counts its own collections.
pub fn after_fork_in_child() {
    for counter in [
        &COLLECTIONS,
        &RELEASED_BYTES,
        &SPENT_US,
        &TOLD_BYTES,
        &TOLD_MS,
    ] {
        counter.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collection_is_told_to_one_marker_and_no_part_of_a_millisecond_is_lost() {
        assert_eq!(take_since_last_marker(), None);
        note(5 << 20, 1_600);
        note(1 << 20, 1_600);
        let since = |released_bytes, ms| Some(Since { released_bytes, ms });
        assert_eq!(take_since_last_marker(), since(6 << 20, 3));
        assert_eq!(take_since_last_marker(), since(0, 0));
        note(0, 1_000);
        assert_eq!(take_since_last_marker(), since(0, 1));
        assert_eq!(total().collections, 3);
        after_fork_in_child();
        assert_eq!(take_since_last_marker(), None);
    }
}
