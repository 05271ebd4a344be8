//! Memory pressure: stalls that the kernel reports (PSI), and the distance to the memory limits.
//!
//! A PSI trigger wakes the governor when tasks stall for memory. The limits of the control group
//! and `FLARENA_MEMORY_LIMIT` are polled, which works everywhere. `judge` is pure.

use std::ffi::{c_int, CStr, OsStr};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use flarena_shared::backoff::Backoff;
use flarena_shared::settings::Settings;

use super::descriptors;
use crate::launch::COUNTERS;
use flarena_sys::{proc::cgroup, proc::procfs};

/// Interval between two checks of the limits, far from them and near.
const FAR_INTERVAL: Duration = Duration::from_secs(2);
const NEAR_INTERVAL: Duration = Duration::from_millis(250);
/// Interval without a limit: there is nothing to check.
const NEVER: Duration = Duration::from_secs(3600);
/// A reclaim that released less did not help: the memory is live.
const WORTHWHILE_BYTES: u64 = 4 << 20;
const SHORTEST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Stalls of 150 ms within 2 s. Windows of a multiple of 2 s need no privilege.
const PSI_TRIGGER: &[u8] = b"some 150000 2000000\0";

pub struct Pressure {
    /// `None` if it is off or not permitted, and without an own descriptor table.
    trigger: Option<OwnedFd>,
    watches_group: bool,
    soft_limit_bytes: Option<u64>,
    backoff: Backoff<Duration>,
    reclaimed_at: Option<Instant>,
}

/// The result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    pub near_limit: bool,
    /// Release all free memory.
    pub reclaim: bool,
    /// The time until the next check.
    pub pause: Duration,
}

impl Pressure {
    pub fn new(settings: &Settings) -> Pressure {
        let may_open = settings.pressure && descriptors::has_own_table();
        Pressure {
            trigger: may_open.then(open_trigger).flatten(),
            ..Pressure::without_trigger(settings.pressure, settings.memory_limit_bytes)
        }
    }

    fn without_trigger(watches_group: bool, soft_limit_bytes: Option<u64>) -> Pressure {
        let backoff = Backoff::between(SHORTEST_BACKOFF, LONGEST_BACKOFF);
        Pressure {
            trigger: None,
            watches_group,
            soft_limit_bytes,
            backoff: backoff.starting_at(Duration::ZERO),
            reclaimed_at: None,
        }
    }

    /// The descriptor to poll.
    pub fn descriptor(&self) -> Option<c_int> {
        self.trigger.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Closes a trigger that reports errors only: its control group was removed.
    pub fn close(&mut self) {
        self.trigger = None;
    }

    pub fn check(&mut self, now: Instant, stalled: bool) -> Level {
        if stalled {
            COUNTERS.pressure_events.fetch_add(1, Relaxed);
        }
        let distance = self.distance();
        self.judge(now, stalled, distance)
    }

    /// Records the reclaim that [`Pressure::check`] advised.
    pub fn reclaimed(&mut self, now: Instant, released_bytes: u64) {
        self.reclaimed_at = Some(now);
        if released_bytes >= WORTHWHILE_BYTES {
            self.backoff.set_shortest();
        } else {
            self.backoff.lengthen();
        }
    }

    fn judge(&self, now: Instant, stalled: bool, distance: Option<Distance>) -> Level {
        let near_limit = distance.is_some_and(|distance| distance.is_near());
        let may_reclaim = self
            .reclaimed_at
            .is_none_or(|then| now.duration_since(then) >= self.backoff.value());
        let pause = match distance {
            None => NEVER,
            Some(_) if near_limit => NEAR_INTERVAL,
            Some(_) => FAR_INTERVAL,
        };
        Level {
            near_limit,
            reclaim: (near_limit || stalled) && may_reclaim,
            pause,
        }
    }

    /// The distance to the nearest limit. The soft limit is for this process, the other for its
    /// group.
    fn distance(&self) -> Option<Distance> {
        let soft = self.soft_limit_bytes.and_then(|limit_bytes| {
            let used_bytes = procfs::resident_bytes()?;
            Some(Distance {
                used_bytes,
                limit_bytes,
            })
        });
        let group = self.watches_group.then(cgroup::memory).and_then(|memory| {
            let limit_bytes = memory.limit_bytes?;
            let used_bytes = memory
                .current_bytes?
                .saturating_sub(cgroup::inactive_file_bytes());
            Some(Distance {
                used_bytes,
                limit_bytes,
            })
        });
        [soft, group]
            .into_iter()
            .flatten()
            .min_by_key(|distance| distance.left_bytes())
    }
}

#[derive(Debug, Clone, Copy)]
struct Distance {
    used_bytes: u64,
    limit_bytes: u64,
}

impl Distance {
    fn left_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }

    /// Less than a tenth of the limit is left, or than one large allocation needs, but never more
    /// than half.
    fn is_near(&self) -> bool {
        self.left_bytes()
            < (self.limit_bytes / 10)
                .max(32 << 20)
                .min(self.limit_bytes / 2)
    }
}

/// Of the process's control group, or else of the system.
fn open_trigger() -> Option<OwnedFd> {
    cgroup::with_v2_file(b"memory.pressure", open_trigger_in)
        .or_else(|| open_trigger_in(c"/proc/pressure/memory"))
}

fn open_trigger_in(path: &CStr) -> Option<OwnedFd> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(OsStr::from_bytes(path.to_bytes()))
        .ok()?;
    file.write_all(PSI_TRIGGER).ok()?;
    Some(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn pressure() -> Pressure {
        Pressure::without_trigger(true, None)
    }

    fn at(used_bytes: u64, limit_bytes: u64) -> Option<Distance> {
        Some(Distance {
            used_bytes,
            limit_bytes,
        })
    }

    #[test]
    fn far_from_every_limit_nothing_is_reclaimed() {
        let level = pressure().judge(Instant::now(), false, at(100 * MB, 1000 * MB));
        assert_eq!(
            level,
            Level {
                near_limit: false,
                reclaim: false,
                pause: FAR_INTERVAL
            }
        );
    }

    #[test]
    fn near_is_a_tenth_of_the_limit_or_32_mb_but_never_more_than_half() {
        for (limit, far, near) in [(1000, 900, 901), (100, 68, 69), (40, 20, 21)] {
            let is_near = |used| at(used * MB, limit * MB).is_some_and(|d| d.is_near());
            assert!(!is_near(far), "{far} of {limit} MB");
            assert!(is_near(near), "{near} of {limit} MB");
        }
    }

    #[test]
    fn the_resident_size_of_this_process_counts_for_the_soft_limit() {
        let limit_bytes = 1 << 40;
        let pressure = Pressure::without_trigger(false, Some(limit_bytes));
        let distance = pressure.distance().expect("a limit was set");
        assert_eq!(distance.limit_bytes, limit_bytes);
        assert!((MB..limit_bytes / 4).contains(&distance.used_bytes));
    }

    #[test]
    fn near_a_limit_free_memory_is_reclaimed() {
        let level = pressure().judge(Instant::now(), false, at(950 * MB, 1000 * MB));
        assert_eq!(
            level,
            Level {
                near_limit: true,
                reclaim: true,
                pause: NEAR_INTERVAL
            }
        );
    }

    #[test]
    fn a_stall_without_any_limit_reclaims() {
        assert!(pressure().judge(Instant::now(), true, None).reclaim);
    }

    #[test]
    fn a_limit_below_the_live_size_reclaims_once_a_minute() {
        let (mut pressure, start) = (pressure(), Instant::now());
        let mut reclaims = 0;
        for quarter in 0..4 * 600 {
            let now = start + NEAR_INTERVAL * quarter;
            if pressure.judge(now, false, at(2000 * MB, 1000 * MB)).reclaim {
                reclaims += 1;
                pressure.reclaimed(now, 0);
            }
        }
        assert!(
            (10..=20).contains(&reclaims),
            "{reclaims} reclaims in ten minutes"
        );
    }
}
