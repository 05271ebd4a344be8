//! Whether malloc is ours in this process, and how many arenas glibc was given. Set once, by the
//! constructor.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

static OWNS_MALLOC: AtomicBool = AtomicBool::new(false);
/// 0: left to glibc.
static ARENA_MAX: AtomicU32 = AtomicU32::new(0);

/// False when another allocator stands before us: then we keep out of its way.
pub fn owns_malloc() -> bool {
    OWNS_MALLOC.load(Relaxed)
}

pub fn set_owns_malloc(owns: bool) {
    OWNS_MALLOC.store(owns, Relaxed);
}

/// The number of glibc arenas that was chosen; `None` when it is glibc's business.
pub fn arena_max() -> Option<u32> {
    Some(ARENA_MAX.load(Relaxed)).filter(|&n| n > 0)
}

pub fn set_arena_max(arenas: Option<u32>) {
    ARENA_MAX.store(arenas.unwrap_or(0), Relaxed);
}
