//! Giving memory back, in the order of what it yields for its cost, and counting the yield.

use std::sync::atomic::Ordering::Relaxed;

use crate::choice::choose::{self, dispatch};
use crate::choice::jemalloc;
use crate::launch::COUNTERS;
use crate::pools;
use crate::report::trim;
use flarena_sys::{config, proc::procfs};

/// Under pressure: everything that can go back. Answers with the bytes.
pub fn everything() -> u64 {
    counted(trim::release_all).1
}

/// The application is idle: the backend's free pages, unless the user said how long jemalloc
/// keeps them ([`aged`] does that), and those of allocators in other libraries. Answers with the bytes.
pub fn idle_heap() -> u64 {
    let keeps = choose::is_jemalloc() && jemalloc::has_users_decay(config::environment());
    if keeps && !pools::has_any() {
        return 0;
    }
    let release = || {
        pools::purge();
        if !keeps {
            dispatch!(trim(0));
        }
    };
    counted(release).1
}

/// What jemalloc's own decay says is due. It asks for this itself only while it is called.
pub fn aged() {
    if choose::is_jemalloc() {
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
    COUNTERS.reclaims.fetch_add(1, Relaxed);
    COUNTERS.reclaimed_bytes.fetch_add(bytes, Relaxed);
    (result, bytes)
}
