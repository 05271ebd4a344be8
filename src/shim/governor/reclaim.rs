//! Returns free memory to the system, and counts how much that released.

use crate::backends::choose::{self, dispatch};
use crate::backends::jemalloc;
use crate::memory_limit;
use crate::pools;
use crate::report::trim;
use flarena_sys::{config, proc::procfs};

/// Under pressure: releases all free memory. Returns the bytes.
pub fn everything() -> u64 {
    counted(trim::release_all).1
}

/// In an idle program: releases the free memory of the backend and of allocators in other
/// libraries. Returns the bytes. If the user chose how long jemalloc keeps pages, only
/// [`decay_jemalloc`] releases them.
pub fn idle_heap() -> u64 {
    let has_users_decay = choose::is_jemalloc() && jemalloc::has_users_decay(config::environment());
    if has_users_decay && !pools::has_any() {
        return 0;
    }
    let release = || {
        pools::purge();
        if !has_users_decay {
            dispatch!(trim(0));
        }
    };
    counted(release).1
}

/// Releases the pages that jemalloc's own decay says are due. jemalloc does so only while the
/// program calls it.
pub fn decay_jemalloc() {
    if choose::is_jemalloc() {
        jemalloc::decay_all();
    }
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
