//! Giving memory back, in the order of what it yields for its cost, and counting the yield.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{backend, dispatch, jemalloc, procfs, trim};

static COUNT: AtomicU64 = AtomicU64::new(0);
static RELEASED: AtomicU64 = AtomicU64::new(0);

pub fn count() -> u64 {
    COUNT.load(Relaxed)
}

pub fn released_bytes_total() -> u64 {
    RELEASED.load(Relaxed)
}

/// Under pressure: everything that can go back. Answers with the bytes.
pub fn everything() -> u64 {
    counted(trim::release_all).1
}

/// The application is idle: the backend's free pages, unless the user said how long jemalloc
/// keeps them ([`aged`] does that). Answers with the bytes.
pub fn idle_heap() -> u64 {
    if backend::is_jemalloc() && jemalloc::has_users_decay(backend::environment()) {
        return 0;
    }
    counted(|| dispatch!(trim(0))).1
}

/// What jemalloc's own decay says is due. It asks for this itself only while it is called.
pub fn aged() {
    if backend::is_jemalloc() {
        jemalloc::decay_all();
    }
}

/// Runs a release and measures by how many bytes the resident set fell.
pub fn counted<T>(release: impl FnOnce() -> T) -> (T, u64) {
    let before = procfs::resident_pages();
    let result = release();
    let after = procfs::resident_pages();
    let pages = before
        .zip(after)
        .map_or(0, |(before, after)| before.saturating_sub(after));
    let bytes = pages * procfs::page_bytes() as u64;
    COUNT.fetch_add(1, Relaxed);
    RELEASED.fetch_add(bytes, Relaxed);
    (result, bytes)
}
