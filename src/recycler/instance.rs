//! The one recycler of this process, what it was told at the start, and what a fork makes of it.

use crate::core::amount::Bytes;
use crate::core::pagemap::Pagemap;
use crate::core::unit::UNIT_BYTES;
use crate::os::linux::LinuxVm;
use crate::state::recycler::Recycler;
use flarena_shared::huge_pages::Choice;
use flarena_shared::settings::Settings;
use flarena_sys::proc::procfs;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// What the process chose; `min_bytes` at least a unit's half keeps the waste of addresses small.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub min_bytes: usize,
    pub decay_ms: u32,
    pub enabled: bool,
    pub memory_limit: Option<u64>,
    pub huge: Choice,
}

static TABLE: Pagemap = Pagemap::new();
pub static RECYCLER: Recycler<LinuxVm> = Recycler::new(LinuxVm::new(), &TABLE);
pub static ENABLED: AtomicBool = AtomicBool::new(false);
pub static MIN_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
pub static DECAY_MS: AtomicU32 = AtomicU32::new(Settings::DEFAULT.decay_ms);

/// Called once, when the allocator is chosen, before any other function here. Does not allocate.
pub fn configure(config: Config) {
    let memory_limit = config.memory_limit.map(Bytes::new);
    RECYCLER.map.huge_pages.choose(config.huge);
    RECYCLER.set_page_shift(detect_page_bytes().ilog2());
    RECYCLER.state.lock().space.tolerance.memory_limit = memory_limit;
    DECAY_MS.store(config.decay_ms, Relaxed);
    MIN_BYTES.store(config.min_bytes.max(1), Relaxed);
    ENABLED.store(config.enabled, Relaxed);
}

/// Tells the map the size of a page; answers it.
pub fn detect_page_bytes() -> usize {
    let page_bytes = procfs::page_bytes().clamp(4096, UNIT_BYTES / 8);
    RECYCLER.map.set_page_bytes(page_bytes);
    page_bytes
}

/// For a process whose malloc is not ours, or whose recycler is given up: large blocks are the backend's from now on.
pub fn disable() {
    ENABLED.store(false, Relaxed);
}

/// Before a fork: whoever writes the books ends, and nobody begins, as far as some milliseconds suffice.
pub fn quiesce_for_fork() {
    RECYCLER.state.rest_for_fork();
}

/// After it, in the parent.
pub fn resume_after_fork() {
    RECYCLER.state.end_rest();
}

/// What the child of a fork makes of the recycler: its own at the first need, or nothing at all.
///
/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    // SAFETY: only fork's child handler comes here, in the child's only thread.
    if !unsafe { RECYCLER.mark_inherited() } {
        disable();
    }
}
