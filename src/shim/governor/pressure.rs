//! Memory pressure: stalls that the kernel reports (PSI), and the distance to the memory limits.
//!
//! A PSI trigger wakes the governor when tasks stall for memory. The limits of the control group
//! and `FLARENA_MEMORY_LIMIT` are polled, which works everywhere. `judge` is pure.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use flarena_shared::backoff::Backoff;

use super::descriptors;
use crate::launch;
use crate::memory_limit::{self, Measured, WORTHWHILE_BYTES};
use flarena_sys::config;
use flarena_sys::proc::cgroup::{self, Unread};

/// Bounds of the interval between two checks of the limits.
const FAR_INTERVAL: Duration = Duration::from_secs(2);
const NEAR_INTERVAL: Duration = Duration::from_millis(50);
/// The shortest interval while the program rests.
pub const QUIET_INTERVAL: Duration = Duration::from_millis(250);
/// The interval is the time in which this rate would use up the room that is left. Large allocations measure the
/// distance themselves (`memory_limit`).
const BYTES_PER_MS: u64 = 2 << 20;
/// Interval without a limit: there is nothing to check.
const NEVER: Duration = Duration::from_secs(3600);
const SHORTEST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Stalls of 150 ms within 2 s. Windows of a multiple of 2 s need no privilege.
const PSI_TRIGGER: &[u8] = b"some 150000 2000000\0";

pub struct Pressure {
    /// `None` if it is off or not permitted, and without an own descriptor table.
    pub trigger: Option<OwnedFd>,
    backoff: Backoff<Duration>,
    next_reclaim_at: Option<Instant>,
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
    pub fn open() -> Pressure {
        let is_on = config::settings().pressure;
        Pressure::with(descriptors::keep_open(|| is_on.then(open_trigger)?))
    }

    fn with(trigger: Option<OwnedFd>) -> Pressure {
        let backoff = Backoff::between(SHORTEST_BACKOFF, LONGEST_BACKOFF);
        Pressure {
            trigger,
            backoff: backoff.starting_at(Duration::ZERO),
            next_reclaim_at: None,
        }
    }

    pub fn check(&mut self, now: Instant, stalled: bool) -> Level {
        if stalled {
            launch::PRESSURE_EVENTS.fetch_add(1, Relaxed);
        }
        self.judge(now, stalled, memory_limit::watch(config::settings()))
    }

    /// Records the reclaim that [`Pressure::check`] advised.
    pub fn reclaimed(&mut self, now: Instant, released_bytes: u64) {
        if released_bytes >= WORTHWHILE_BYTES {
            self.backoff.set_shortest();
        } else {
            self.backoff.lengthen();
        }
        self.next_reclaim_at = Some(now + self.backoff.value());
    }

    fn judge(&self, now: Instant, stalled: bool, measured: Measured) -> Level {
        let (near_limit, pause) = match measured {
            Ok(Some(distance)) => (distance.is_near(), interval(distance.left_bytes())),
            Ok(None) => (false, NEVER),
            Err(Unread) => (false, FAR_INTERVAL),
        };
        let may_reclaim = self.next_reclaim_at.is_none_or(|at| now >= at);
        Level {
            near_limit,
            reclaim: (near_limit || stalled) && may_reclaim,
            pause,
        }
    }
}

fn interval(left_bytes: u64) -> Duration {
    Duration::from_millis(left_bytes / BYTES_PER_MS).clamp(NEAR_INTERVAL, FAR_INTERVAL)
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
    use crate::memory_limit::Distance;

    const MB: u64 = 1 << 20;

    fn pressure() -> Pressure {
        Pressure::with(None)
    }

    fn at(used_bytes: u64, limit_bytes: u64) -> Measured {
        Ok(Some(Distance {
            used_bytes,
            limit_bytes,
        }))
    }

    #[test]
    fn far_from_every_limit_nothing_is_reclaimed() {
        let level = pressure().judge(Instant::now(), false, at(100 * MB, 5000 * MB));
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
    fn the_less_is_left_the_sooner_is_the_next_check() {
        for (left_mb, ms) in [(10, 50), (400, 200), (9000, 2000)] {
            assert_eq!(interval(left_mb * MB), Duration::from_millis(ms));
        }
    }

    #[test]
    fn a_stall_without_any_limit_reclaims() {
        let level = pressure().judge(Instant::now(), true, Ok(None));
        assert!(level.reclaim);
    }

    #[test]
    fn a_failed_measurement_is_repeated_within_2_s() {
        let level = pressure().judge(Instant::now(), false, Err(Unread));
        assert_eq!(level.pause, FAR_INTERVAL);
    }

    #[test]
    fn a_limit_below_the_live_size_reclaims_once_a_minute() {
        let (mut pressure, start) = (pressure(), Instant::now());
        let mut reclaims = 0;
        for quarter in 0..4 * 600 {
            let now = start + Duration::from_millis(250) * quarter;
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
