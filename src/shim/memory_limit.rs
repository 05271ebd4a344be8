//! The memory limits of the process, and the release of free memory at the allocation that would cross one.
//!
//! `flarena_sys::headroom` counts large allocations. When they have used up their allowance, the allocating thread
//! measures the distance to the nearest limit. Near the limit, the thread returns all free memory of the process. The
//! governor finds the limits and renews the allowance at each check. Invariant: a thread only tries to lock `STATE`, so
//! no allocation waits for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::time::ClockId;

use crate::backends::choose::dispatch;
use flarena_recycler as recycler;
use flarena_shared::settings::Settings;
use flarena_sys::errno::SavedErrno;
use flarena_sys::proc::cgroup::{self, LimitedGroup, Unread};
use flarena_sys::proc::procfs;
use flarena_sys::sync::lock::Lock;
use flarena_sys::{headroom, owner, time};

/// A release that returned less was not worth its locks: the memory is live.
pub const WORTHWHILE_BYTES: u64 = 4 << 20;
/// Pauses after a measurement and after a release by an allocating thread, as a multiple of the time that it took.
const PAUSE_AFTER_MEASUREMENT: u32 = 20;
const PAUSE_AFTER_RELEASE: u32 = 2;
const PAUSE_AFTER_VAIN_RELEASE: u32 = 64;
/// The allowance until the next measurement: one part in `ALLOWED_SHARE` of the room beyond the reserve, as other processes of
/// the group use their part, but at least `LEAST_ALLOWED_BYTES`.
const ALLOWED_SHARE: u64 = 4;
const LEAST_ALLOWED_BYTES: u64 = 1 << 20;
/// The smallest reserve. So many bytes are measured without a pause: to fault them in takes far longer than to measure.
const LARGE_BYTES: u64 = 16 << 20;
/// The kernel charges a group for pages in advance, up to 64 for each of its processors, and takes these back before it
/// kills.
const CHARGED_AHEAD_BYTES: u64 = 512 << 10;
/// One part in so many of the memory outside the process is spared for the rest of its group. In an NVFlare job two clients
/// receive a model at the same time: each may fit, and not both.
const SPARED_SHARE: u64 = 16;

static STATE: Lock<State> = Lock::new(State {
    watched: Watched {
        soft_limit_bytes: None,
        group: Ok(None),
    },
    next_measurement_at: Duration::ZERO,
    next_release_at: Duration::ZERO,
});

/// Releases of the governor and of allocating threads.
pub static RECLAIMS: AtomicU64 = AtomicU64::new(0);
pub static RECLAIMED_BYTES: AtomicU64 = AtomicU64::new(0);

struct State {
    watched: Watched,
    /// Monotonic times. Before the first, an allocating thread measures only for `LARGE_BYTES` or more; before the second,
    /// not at all.
    next_measurement_at: Duration,
    next_release_at: Duration,
}

/// The limits that apply. The soft limit is for this process, the other for its group.
#[derive(Clone, Copy)]
pub struct Watched {
    soft_limit_bytes: Option<u64>,
    group: Result<Option<LimitedGroup>, Unread>,
}

impl Watched {
    fn may_have_limit(&self) -> bool {
        self.soft_limit_bytes.is_some() || !matches!(self.group, Ok(None))
    }

    fn limited_group(&self) -> Option<&LimitedGroup> {
        self.group.as_ref().ok()?.as_ref()
    }

    /// Measures the distance to the nearer limit.
    fn distance(&self) -> Option<Distance> {
        let soft = self
            .soft_limit_bytes
            .and_then(|limit_bytes| Some((limit_bytes, procfs::resident_bytes()?)));
        let group = self
            .limited_group()
            .and_then(|group| Some((group.limit_bytes, group.used_bytes()?)));
        [soft, group]
            .into_iter()
            .flatten()
            .map(|(limit_bytes, used_bytes)| Distance {
                used_bytes,
                limit_bytes,
            })
            .min_by_key(Distance::left_bytes)
    }

    /// The allowance of large allocations until the next measurement.
    fn allowance(&self, measured: Option<Distance>) -> Option<u64> {
        match measured {
            Some(distance) => Some(distance.allowed_bytes()),
            // The measurement failed, for example for lack of descriptors, so the next one is due soon.
            None => self.may_have_limit().then_some(LEAST_ALLOWED_BYTES),
        }
    }

    /// Not inlined, as a thread that allocates may have a small stack.
    #[inline(never)]
    fn read_group_if_unread(&mut self) {
        if self.group.is_err() {
            self.group = cgroup::nearest_limit();
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Distance {
    pub used_bytes: u64,
    pub limit_bytes: u64,
}

impl Distance {
    pub fn left_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }

    /// Less than a tenth of the limit is left, or than one large allocation needs, but never more
    /// than half.
    pub fn is_near(&self) -> bool {
        self.left_bytes() < self.share(10, 32 << 20)
    }

    /// The bytes to leave free: a 32nd of the limit, or the growth of a few processes between two measurements.
    fn reserve_bytes(&self) -> u64 {
        self.share(32, LARGE_BYTES)
    }

    fn share(&self, share: u64, least_bytes: u64) -> u64 {
        (self.limit_bytes / share)
            .max(least_bytes)
            .min(self.limit_bytes / 2)
    }

    /// The next `bytes` would leave less than the reserve.
    fn is_crossed_by(&self, bytes: u64) -> bool {
        self.left_bytes() < self.reserve_bytes().saturating_add(bytes)
    }

    /// The bytes that large allocations may take before the next measurement.
    fn allowed_bytes(&self) -> u64 {
        let spare = self.left_bytes().saturating_sub(self.reserve_bytes());
        (spare / ALLOWED_SHARE).max(LEAST_ALLOWED_BYTES)
    }
}

/// The distance to the nearest limit; `None` without a limit. An error if there may be one, but a file could not be read.
pub type Measured = Result<Option<Distance>, Unread>;

/// Reads the limits again, and renews the allowance. Called by the governor, and once where there is none.
#[inline(never)]
pub fn watch(settings: &Settings) -> Measured {
    let watches_group = settings.pressure.then(cgroup::nearest_limit);
    let watched = Watched {
        soft_limit_bytes: settings.memory_limit_bytes,
        group: watches_group.unwrap_or(Ok(None)),
    };
    let distance = watched.distance();
    // An allocating thread that holds the lock sets the allowance itself.
    if let Some(mut state) = STATE.try_lock() {
        state.watched = watched;
        headroom::set(watched.allowance(distance));
    }
    match distance {
        None if watched.may_have_limit() => Err(Unread),
        distance => Ok(distance),
    }
}

/// Counts a block of the backend that the program is about to touch.
#[inline]
pub fn charge(bytes: usize) {
    headroom::charge(bytes as u64);
    release_if_due();
}

/// Called by each large allocation, before the program has the block.
#[inline]
pub fn release_if_due() {
    if let Some(charged_bytes) = headroom::charged_bytes_if_due() {
        release_near_limit(charged_bytes);
    }
}

/// The lack of room for an allocation, after the release of all free memory.
#[derive(Debug, Clone, Copy)]
pub struct Shortage {
    /// To the limit at which the kernel kills.
    pub distance: Distance,
    /// The part of the room that is spared for the rest of the group.
    pub spared_bytes: u64,
}

/// The shortage, if `bytes` do not fit. `spares_others` leaves room for processes that allocate at the same time. `None` also
/// if another thread measures.
pub fn shortage(bytes: u64, spares_others: bool) -> Option<Shortage> {
    let mut state = STATE.try_lock()?;
    state.watched.read_group_if_unread();
    let group = state.watched.limited_group()?;
    let left_bytes = group.bytes_before_kill()?;
    let used_bytes = group.limit_bytes.saturating_sub(left_bytes);
    // The other processes' part is read only where it can decide.
    let may_be_short = left_bytes < bytes.saturating_add(used_bytes / SPARED_SHARE);
    let spared_bytes = match spares_others && may_be_short {
        true => spared_bytes(used_bytes),
        false => 0,
    };
    let bytes = bytes.saturating_add(spared_bytes);
    if left_bytes >= bytes {
        return None;
    }
    let cached_bytes = recycler::stats_unless_locked().map_or(0, |stats| stats.cached_bytes);
    if left_bytes + cached_bytes >= bytes {
        // The recycler may serve the block from its cached pages. If it takes fresh ones, the cached ones are released at once.
        state.next_measurement_at = Duration::ZERO;
        state.next_release_at = Duration::ZERO;
        return None;
    }
    release_all();
    let left_bytes = group.bytes_before_kill()? + CHARGED_AHEAD_BYTES;
    let distance = Distance {
        used_bytes: group.limit_bytes.saturating_sub(left_bytes),
        limit_bytes: group.limit_bytes,
    };
    (left_bytes < bytes).then_some(Shortage {
        distance,
        spared_bytes: spared_bytes.min(left_bytes),
    })
}

/// Room for the rest of a group that uses so many bytes; 0 for a process that is alone but for small ones.
fn spared_bytes(used_bytes: u64) -> u64 {
    let own_bytes = procfs::unreclaimable_bytes().unwrap_or(used_bytes);
    let spared_bytes = used_bytes.saturating_sub(own_bytes) / SPARED_SHARE;
    match spared_bytes < LEAST_ALLOWED_BYTES {
        true => 0,
        false => spared_bytes,
    }
}

#[cold]
#[inline(never)]
fn release_near_limit(charged_bytes: u64) {
    if !owner::may_act() {
        return;
    }
    let _errno = SavedErrno::save();
    let Some(mut state) = STATE.try_lock() else {
        return;
    };
    let begin = time::now(ClockId::Monotonic);
    let is_small = charged_bytes < LARGE_BYTES;
    if begin < state.next_release_at || begin < state.next_measurement_at && is_small {
        return headroom::defer(LEAST_ALLOWED_BYTES);
    }
    state.watched.read_group_if_unread();
    let Some(before) = state.watched.distance() else {
        return headroom::set(state.watched.allowance(None));
    };
    let (mut after, mut pause) = (before, PAUSE_AFTER_MEASUREMENT);
    let releases = before.is_crossed_by(charged_bytes);
    if releases {
        release_all();
        after = state.watched.distance().unwrap_or(before);
        let released_bytes = before.used_bytes.saturating_sub(after.used_bytes);
        count(released_bytes);
        pause = if released_bytes >= WORTHWHILE_BYTES {
            PAUSE_AFTER_RELEASE
        } else {
            PAUSE_AFTER_VAIN_RELEASE
        };
    }
    let end = time::now(ClockId::Monotonic);
    let next_at = end + end.saturating_sub(begin) * pause;
    if releases {
        state.next_release_at = next_at;
    } else {
        state.next_measurement_at = next_at;
    }
    headroom::set(Some(after.allowed_bytes()));
}

/// Not the pools of other libraries: the caller may be one of them.
fn release_all() {
    recycler::trim();
    dispatch!(trim(0));
}

/// Runs a release, and also returns by how many bytes the resident size fell.
pub fn counted<T>(release: impl FnOnce() -> T) -> (T, u64) {
    let before = procfs::resident_bytes();
    let result = release();
    let bytes = before.zip(procfs::resident_bytes());
    let bytes = bytes.map_or(0, |(before, after)| before.saturating_sub(after));
    count(bytes);
    (result, bytes)
}

fn count(released_bytes: u64) {
    RECLAIMS.fetch_add(1, Relaxed);
    RECLAIMED_BYTES.fetch_add(released_bytes, Relaxed);
}

/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    RECLAIMS.store(0, Relaxed);
    RECLAIMED_BYTES.store(0, Relaxed);
    // SAFETY: the child of a fork has no other thread yet, so STATE has no other user.
    if let Some(mut state) = unsafe { STATE.take_over_after_fork() } {
        state.next_measurement_at = Duration::ZERO;
        state.next_release_at = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn at(used_mb: u64, limit_mb: u64) -> Distance {
        Distance {
            used_bytes: used_mb * MB,
            limit_bytes: limit_mb * MB,
        }
    }

    #[test]
    fn a_forked_child_does_not_count_the_reclaims_of_its_parent() {
        count(3 * MB);
        // SAFETY: no other test uses STATE or the counts.
        unsafe { after_fork_in_child() };
        assert_eq!(RECLAIMS.load(Relaxed), 0);
        assert_eq!(RECLAIMED_BYTES.load(Relaxed), 0);
    }

    #[test]
    fn near_is_a_tenth_of_the_limit_or_32_mb_but_never_more_than_half() {
        for (limit, far, near) in [(1000, 900, 901), (100, 68, 69), (40, 20, 21)] {
            assert!(!at(far, limit).is_near(), "{far} of {limit} MB");
            assert!(at(near, limit).is_near(), "{near} of {limit} MB");
        }
    }

    #[test]
    fn an_allocation_crosses_the_limit_if_it_leaves_less_than_the_reserve() {
        assert!(!at(900, 1024).is_crossed_by(92 * MB));
        assert!(at(900, 1024).is_crossed_by(93 * MB));
        assert!(at(2000, 1000).is_crossed_by(0));
    }

    #[test]
    fn the_allowance_is_a_quarter_of_what_the_reserve_leaves_but_at_least_1_mb() {
        assert_eq!(at(592, 1024).allowed_bytes(), 100 * MB);
        assert_eq!(at(1020, 1024).allowed_bytes(), MB);
        assert_eq!(at(2000, 1024).allowed_bytes(), MB);
    }

    #[test]
    fn control_groups_that_could_not_be_read_are_read_again_after_the_next_large_block() {
        let mut watched = Watched {
            soft_limit_bytes: None,
            group: Err(Unread),
        };
        assert_eq!(watched.allowance(None), Some(LEAST_ALLOWED_BYTES));
        watched.read_group_if_unread();
        assert!(watched.group.is_ok());
        watched.group = Ok(None);
        assert_eq!(watched.allowance(None), None);
    }

    #[test]
    fn the_resident_size_of_this_process_counts_for_the_soft_limit() {
        let limit_bytes = 1 << 40;
        let mut settings = Settings {
            memory_limit_bytes: Some(limit_bytes),
            pressure: false,
            ..Settings::DEFAULT
        };
        let Ok(Some(distance)) = watch(&settings) else {
            panic!("a limit was set");
        };
        settings.memory_limit_bytes = None;
        assert!(matches!(watch(&settings), Ok(None)));
        assert_eq!(distance.limit_bytes, limit_bytes);
        assert!((MB..limit_bytes / 4).contains(&distance.used_bytes));
    }
}
