//! Memory pressure: what the kernel says (PSI), and how far the limits are.
//!
//! A PSI trigger wakes us when tasks stall for memory, where one may be opened. The limits of the
//! control group and the user's soft limit are polled, which works everywhere.

use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use flarena_shared::settings::Settings;

use super::descriptor::{close, Descriptor};
use crate::launch::COUNTERS;
use flarena_sys::{proc::cgroup, proc::procfs};

static TRIGGER: Descriptor = Descriptor::none();

/// How often the limits are looked at, far from them and near.
const FAR: Duration = Duration::from_secs(2);
const NEAR: Duration = Duration::from_millis(250);
/// No limit and no trigger: nothing to look at.
const NEVER: Duration = Duration::from_secs(3600);
/// A reclaim that gave less than this did not help: the memory is live.
const WORTHWHILE_BYTES: u64 = 4 << 20;
const SHORTEST_BACK_OFF: Duration = Duration::from_secs(1);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);
/// Stalled for 150 ms within 2 s; windows of whole 2 s need no privilege.
const PSI_TRIGGER: &[u8] = b"some 150000 2000000\0";

/// Gives the trigger up: one whose group is gone only fails.
pub fn forget() {
    TRIGGER.forget();
}

/// The child of a fork must not keep its parent's.
pub fn after_fork_in_child() {
    TRIGGER.forget_in_child();
}

pub struct Watch {
    enabled: bool,
    soft_limit_bytes: Option<u64>,
    back_off: Duration,
    reclaimed_at: Option<Instant>,
}

/// What one look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    pub near_limit: bool,
    pub reclaim: bool,
    pub pause: Duration,
}

impl Watch {
    pub fn new(settings: &Settings) -> Watch {
        if settings.pressure {
            if let Some(fd) = open_trigger() {
                TRIGGER.keep(fd);
            }
        }
        Watch {
            enabled: settings.pressure,
            soft_limit_bytes: settings.memory_limit_bytes,
            back_off: Duration::ZERO,
            reclaimed_at: None,
        }
    }

    pub fn descriptor(&self) -> Option<i32> {
        TRIGGER.get()
    }

    pub fn look(&mut self, now: Instant, stalled: bool) -> Level {
        if stalled {
            COUNTERS.pressure_events.fetch_add(1, Relaxed);
        }
        let distance = self.distance();
        self.judge(now, stalled, distance)
    }

    /// Tells what the reclaim that was asked for gave back.
    pub fn reclaimed(&mut self, now: Instant, released_bytes: u64) {
        self.reclaimed_at = Some(now);
        self.back_off = if released_bytes >= WORTHWHILE_BYTES {
            SHORTEST_BACK_OFF
        } else {
            (self.back_off * 2).clamp(SHORTEST_BACK_OFF, LONGEST_BACK_OFF)
        };
    }

    fn judge(&self, now: Instant, stalled: bool, distance: Option<Distance>) -> Level {
        let near_limit = distance.is_some_and(|distance| distance.is_near());
        let rested = self
            .reclaimed_at
            .is_none_or(|then| now.duration_since(then) >= self.back_off);
        let pause = match distance {
            None => NEVER,
            Some(_) if near_limit => NEAR,
            Some(_) => FAR,
        };
        Level {
            near_limit,
            reclaim: (near_limit || stalled) && rested,
            pause,
        }
    }

    /// The nearest limit: the soft one counts this process, the group's counts the group.
    fn distance(&self) -> Option<Distance> {
        let soft = self.soft_limit_bytes.and_then(|limit_bytes| {
            let used_bytes = procfs::resident_pages()? * procfs::page_bytes() as u64;
            Some(Distance {
                used_bytes,
                limit_bytes,
            })
        });
        let group = self.enabled.then(cgroup::memory).and_then(|memory| {
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

    /// Within a tenth of the limit, or within what one large allocation takes.
    fn is_near(&self) -> bool {
        self.left_bytes()
            < (self.limit_bytes / 10)
                .max(32 << 20)
                .min(self.limit_bytes / 2)
    }
}

/// The group's own pressure where the kernel has it, else the system's.
fn open_trigger() -> Option<i32> {
    cgroup::with_v2_file(b"memory.pressure", open_trigger_in)
        .or_else(|| open_trigger_in(c"/proc/pressure/memory"))
}

fn open_trigger_in(file: &CStr) -> Option<i32> {
    // SAFETY: the path is NUL-terminated.
    let fd = unsafe {
        libc::open(
            file.as_ptr(),
            libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC,
        )
    };
    if fd < 0 {
        return None;
    }
    // SAFETY: the pointer and the length are those of a constant.
    let written = unsafe { libc::write(fd, PSI_TRIGGER.as_ptr().cast(), PSI_TRIGGER.len()) };
    if written < 0 {
        close(fd);
        return None;
    }
    Some(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn watch() -> Watch {
        let (back_off, reclaimed_at) = (Duration::ZERO, None);
        Watch {
            enabled: true,
            soft_limit_bytes: None,
            back_off,
            reclaimed_at,
        }
    }

    fn at(used_bytes: u64, limit_bytes: u64) -> Option<Distance> {
        Some(Distance {
            used_bytes,
            limit_bytes,
        })
    }

    #[test]
    fn far_from_every_limit_nothing_is_done() {
        let level = watch().judge(Instant::now(), false, at(100 * MB, 1000 * MB));
        assert_eq!(
            level,
            Level {
                near_limit: false,
                reclaim: false,
                pause: FAR
            }
        );
    }

    #[test]
    fn near_is_a_tenth_of_the_limit_or_a_large_block_but_never_more_than_half() {
        for (limit, far, near) in [(1000, 900, 901), (100, 68, 69), (40, 20, 21)] {
            let is_near = |used| at(used * MB, limit * MB).is_some_and(|d| d.is_near());
            assert!(!is_near(far), "{far} of {limit} MB");
            assert!(is_near(near), "{near} of {limit} MB");
        }
    }

    #[test]
    fn what_counts_against_a_soft_limit_is_what_this_process_has_resident() {
        let limit_bytes = 1 << 40;
        let watch = Watch {
            enabled: false,
            soft_limit_bytes: Some(limit_bytes),
            ..watch()
        };
        let distance = watch.distance().expect("a limit was set");
        assert_eq!(distance.limit_bytes, limit_bytes);
        assert!((MB..limit_bytes / 4).contains(&distance.used_bytes));
    }

    #[test]
    fn near_a_limit_memory_is_reclaimed() {
        let level = watch().judge(Instant::now(), false, at(950 * MB, 1000 * MB));
        assert_eq!(
            level,
            Level {
                near_limit: true,
                reclaim: true,
                pause: NEAR
            }
        );
    }

    #[test]
    fn a_stall_counts_without_any_limit() {
        assert!(watch().judge(Instant::now(), true, None).reclaim);
    }

    #[test]
    fn a_limit_below_the_live_size_backs_off_to_once_a_minute() {
        let (mut watch, start) = (watch(), Instant::now());
        let mut reclaims = 0;
        for quarter in 0..4 * 600 {
            let now = start + NEAR * quarter;
            if watch.judge(now, false, at(2000 * MB, 1000 * MB)).reclaim {
                reclaims += 1;
                watch.reclaimed(now, 0);
            }
        }
        assert!(
            (10..=20).contains(&reclaims),
            "{reclaims} reclaims in ten minutes"
        );
    }
}
