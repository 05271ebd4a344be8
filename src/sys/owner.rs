//! Whether this library serves malloc in this process, and the number of glibc arenas. The constructor
//! sets both once.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::seccomp;

static OWNS_MALLOC: AtomicBool = AtomicBool::new(false);
/// 0: glibc decides.
static ARENA_MAX: AtomicU32 = AtomicU32::new(0);

/// False if another allocator precedes this library, which then stays passive.
pub fn owns_malloc() -> bool {
    OWNS_MALLOC.load(Relaxed)
}

/// True if a call of the malloc family may look at the process and release memory. Not in a program that may punish
/// getpid, nor in a vfork child, which shares its parent's memory.
pub fn may_act() -> bool {
    owns_malloc() && seccomp::allows_common_calls() && !seccomp::is_vfork_child()
}

pub fn set_owns_malloc(owns: bool) {
    OWNS_MALLOC.store(owns, Relaxed);
}

/// The chosen number of glibc arenas; `None` if glibc decides.
pub fn arena_max() -> Option<u32> {
    Some(ARENA_MAX.load(Relaxed)).filter(|&n| n > 0)
}

pub fn set_arena_max(arenas: Option<u32>) {
    ARENA_MAX.store(arenas.unwrap_or(0), Relaxed);
}
