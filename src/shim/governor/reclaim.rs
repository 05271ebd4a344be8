//! Returns free memory to the system, and counts how much that released.

use crate::backends::choose::{self, dispatch};
use crate::backends::jemalloc;
use crate::memory_limit;
use crate::report::trim;
use flarena_sys::{config, proc::procfs};

/// Under pressure: releases all free memory. Returns the bytes.
pub fn everything() -> u64 {
    counted(|| trim::release(0)).1
}

/// In an idle program: releases the free memory of the backend. Returns the bytes. If the user chose how long
/// jemalloc keeps pages, only its own decay releases them.
pub fn idle_heap() -> u64 {
    if choose::is_jemalloc() && jemalloc::has_users_decay(config::environment()) {
        return 0;
    }
    counted(|| dispatch!(trim(0))).1
}

/// Runs a release, and also returns by how many bytes the resident size fell.
pub fn counted<T>(release: impl FnOnce() -> T) -> (T, u64) {
    let before = procfs::resident_bytes();
    let result = release();
    let after = procfs::resident_bytes();
    let bytes = before
        .zip(after)
        .map_or(0, |(before, after)| before.saturating_sub(after));
    memory_limit::count(bytes);
    (result, bytes)
}
