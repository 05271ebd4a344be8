//! What the governor, trims and statistics call.

use crate::core::amount::Bytes;
use crate::instance::{DECAY_MS, ENABLED, RECYCLER};
use crate::state::counters::Stats;
use crate::state::origin::LiveBlock;
use crate::state::recycler::Locked;
use flarena_sys::errno::SavedErrno;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Returns pages that were unused for the decay time; called by the governor. Answers when to call next;
/// None: nothing is held.
pub fn decay() -> Option<Duration> {
    let in_ms = RECYCLER.decay_round(DECAY_MS.load(Relaxed))?;
    Some(Duration::from_millis(in_ms.into()))
}

/// The same where there can be no governor: at calls of the program, as often as a governor would.
pub fn decay_if_due() {
    let _errno = SavedErrno::save();
    RECYCLER.decay_round_if_due(DECAY_MS.load(Relaxed));
}

/// Returns everything cached and all slack. Answers bytes.
pub fn trim() -> u64 {
    let _errno = SavedErrno::save();
    RECYCLER.purge_all().count()
}

/// What is set now must outlive the reset of a forked child's books.
fn adopted_state() -> Locked<'static> {
    RECYCLER.adopt_after_fork();
    RECYCLER.lock()
}

/// Near a memory limit nothing is kept beyond the peak.
pub fn set_pressure(near_limit: bool) {
    adopted_state().space.tolerance.near_limit = near_limit;
}

/// The bytes that the process may use, once somebody has looked: keeps the tolerance away from them.
pub fn set_memory_limit(bytes: Option<u64>) {
    adopted_state().space.tolerance.memory_limit = bytes.map(Bytes::new);
}

/// Every live block; a few that come meanwhile may be missing.
pub fn live_blocks() -> Vec<LiveBlock> {
    let now = usize::try_from(RECYCLER.numbers().live_blocks).unwrap_or(0);
    let mut blocks = Vec::with_capacity(now + 64);
    RECYCLER.list_blocks(&mut blocks);
    blocks
}

/// The governor runs and will call `decay`: more may be kept between frees.
pub fn set_governed(governed: bool) {
    adopted_state().governed = governed;
}

/// The calling thread is in the middle of the books.
pub fn lock_is_held_by_me() -> bool {
    RECYCLER.state.is_mine()
}

/// The governor could not be started: until it is, little is kept, as nothing ages it.
pub fn set_governor_unavailable() {
    adopted_state().ungovernable = true;
}

/// True once the process holds enough in large blocks to be worth a governor.
#[inline]
pub fn wants_governor() -> bool {
    RECYCLER.wants_governor_thread.load(Relaxed)
}

/// What large blocks hold now: exact.
pub fn live_bytes() -> u64 {
    RECYCLER.held_by_blocks().count()
}

pub fn stats() -> Stats {
    let mut stats = RECYCLER.numbers();
    stats.enabled = ENABLED.load(Relaxed);
    stats.decay_ms = DECAY_MS.load(Relaxed);
    stats.asks_for_huge_pages = RECYCLER.map.huge_pages.are_requested();
    stats
}
