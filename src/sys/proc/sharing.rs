//! The memory that this process shares with its parent and its children since a fork.
//!
//! For each reading the kernel walks the page tables: about 40 ms per GB with pages of 4 KiB. So nothing is
//! read before the first fork, and all readings together take at most a hundredth of the time. The fork
//! handlers and `read` change the state here.

use std::ffi::CStr;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::time::ClockId;

use crate::io::file::File;
use crate::proc::procfs;
use crate::time::now_us;

/// A reading is followed by a pause of so many times its CPU time.
const PAUSE_FACTOR: u64 = 100;
/// A reading is returned again for so long: a stage asks for a collection, then writes its marker.
const FRESH_US: u64 = 100_000;

static HAS_RELATIVES: AtomicBool = AtomicBool::new(false);
/// False once the kernel has shown that it does not report the sizes.
static IS_REPORTED: AtomicBool = AtomicBool::new(true);
/// Nothing is read before this time of the monotonic clock.
static NEXT_US: AtomicU64 = AtomicU64::new(0);
/// The last reading. Its parts may come from two threads that read at the same time.
static READ_AT_US: AtomicU64 = AtomicU64::new(0);
static PSS_BYTES: AtomicU64 = AtomicU64::new(0);
static PSS_ANON_BYTES: AtomicU64 = AtomicU64::new(0);
static ANON_BYTES: AtomicU64 = AtomicU64::new(0);
static RSS_BYTES: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// No fork took place before or after the last exec, or the kernel does not report it.
    Unshared,
    /// No reading since the fork has succeeded: another thread reads, or there was no descriptor for it.
    NotRead,
    Read(Sizes),
    /// There is no new reading. The last one is returned, with a PSS that follows the RSS.
    Estimated(Sizes),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Resident memory, in which each shared page counts with the part of this process.
    pub pss_bytes: u64,
    /// Anonymous memory of that kind. It becomes `anon_bytes` if nothing is shared any more.
    pub pss_anon_bytes: u64,
    pub anon_bytes: u64,
}

/// Called after a fork, in parent and child.
pub fn note_fork() {
    HAS_RELATIVES.store(true, Relaxed);
    NEXT_US.store(0, Relaxed);
    READ_AT_US.store(0, Relaxed);
}

/// The result of a reading.
enum Rollup {
    Sizes(Sizes),
    /// Linux before 5.4 does not report `Pss_Anon`, and before 4.14 it has no such file.
    NotReported,
    Failed,
}

/// Preserves errno and allocates nothing.
pub fn read() -> Sharing {
    read_from(c"/proc/self/smaps_rollup")
}

fn read_from(path: &CStr) -> Sharing {
    if !HAS_RELATIVES.load(Relaxed) || !IS_REPORTED.load(Relaxed) {
        return Sharing::Unshared;
    }
    let (begin_us, next_us) = (now_us(ClockId::Monotonic), NEXT_US.load(SeqCst));
    let read_at_us = READ_AT_US.load(SeqCst);
    if begin_us < read_at_us + FRESH_US {
        return Sharing::Read(last());
    }
    // One of several threads reads.
    if begin_us < next_us
        || NEXT_US
            .compare_exchange(next_us, u64::MAX, SeqCst, SeqCst)
            .is_err()
    {
        return without_reading(read_at_us);
    }
    let cpu_us = now_us(ClockId::ThreadCPUTime);
    let rollup = rollup(path);
    let cost_us = now_us(ClockId::ThreadCPUTime) - cpu_us;
    let end_us = now_us(ClockId::Monotonic);
    NEXT_US.store(end_us + cost_us * PAUSE_FACTOR, SeqCst);
    match rollup {
        Rollup::Sizes(sizes) => {
            PSS_BYTES.store(sizes.pss_bytes, Relaxed);
            PSS_ANON_BYTES.store(sizes.pss_anon_bytes, Relaxed);
            ANON_BYTES.store(sizes.anon_bytes, Relaxed);
            RSS_BYTES.store(rss_bytes(), Relaxed);
            READ_AT_US.store(end_us, SeqCst);
            Sharing::Read(sizes)
        }
        Rollup::NotReported => {
            IS_REPORTED.store(false, Relaxed);
            Sharing::Unshared
        }
        Rollup::Failed => without_reading(read_at_us),
    }
}

fn without_reading(read_at_us: u64) -> Sharing {
    match read_at_us {
        0 => Sharing::NotRead,
        _ => Sharing::Estimated(estimate(last(), RSS_BYTES.load(Relaxed), rss_bytes())),
    }
}

fn rollup(path: &CStr) -> Rollup {
    let mut buffer = [0; 2048];
    match File::open(path, OFlags::RDONLY).and_then(|file| file.read(&mut buffer)) {
        Ok(length) => parse(&buffer[..length]).map_or(Rollup::NotReported, Rollup::Sizes),
        Err(Errno::NOENT) => Rollup::NotReported,
        Err(_) => Rollup::Failed,
    }
}

/// New pages are private, and sharing only becomes less until the next fork.
fn estimate(last: Sizes, rss_then: u64, rss_now: u64) -> Sizes {
    let pss_bytes = (last.pss_bytes + rss_now).saturating_sub(rss_then);
    Sizes { pss_bytes, ..last }
}

fn rss_bytes() -> u64 {
    procfs::resident_bytes().unwrap_or(0)
}

fn last() -> Sizes {
    Sizes {
        pss_bytes: PSS_BYTES.load(Relaxed),
        pss_anon_bytes: PSS_ANON_BYTES.load(Relaxed),
        anon_bytes: ANON_BYTES.load(Relaxed),
    }
}

/// `None` on Linux before 5.4, which does not report `Pss_Anon`.
fn parse(rollup: &[u8]) -> Option<Sizes> {
    let bytes = |label| Some(procfs::labelled_number(rollup, label)? << 10);
    Some(Sizes {
        pss_bytes: bytes(b"Pss:")?,
        pss_anon_bytes: bytes(b"Pss_Anon:")?,
        anon_bytes: bytes(b"Anonymous:")?,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A test that changes the state of this module holds it.
    static SERIAL: Mutex<()> = Mutex::new(());

    #[test]
    fn nothing_is_read_before_a_fork_and_seldom_after_it() {
        let _serial = SERIAL.lock();
        HAS_RELATIVES.store(false, Relaxed);
        assert_eq!(read(), Sharing::Unshared);
        note_fork();
        let Sharing::Read(sizes) = read() else {
            panic!("the kernel reports no shared memory");
        };
        assert!(sizes.pss_anon_bytes <= sizes.pss_bytes.min(sizes.anon_bytes));
        assert_eq!(read(), Sharing::Read(sizes));
        NEXT_US.store(u64::MAX, SeqCst);
        READ_AT_US.store(1, SeqCst);
        assert!(matches!(read(), Sharing::Estimated(_)));
        READ_AT_US.store(0, SeqCst);
        assert_eq!(read(), Sharing::NotRead);
        note_fork();
        assert!(matches!(read(), Sharing::Read(_)));
    }

    #[test]
    fn a_kernel_without_the_sizes_is_asked_once_and_a_failed_reading_is_none() {
        let _serial = SERIAL.lock();
        note_fork();
        // Reading a directory fails.
        assert_eq!(read_from(c"/proc/self"), Sharing::NotRead);
        for missing in [c"/proc/self/status", c"/proc/self/no_such_file"] {
            note_fork();
            assert_eq!(read_from(missing), Sharing::Unshared);
            assert_eq!(read_from(missing), Sharing::Unshared);
            IS_REPORTED.store(true, Relaxed);
        }
    }

    #[test]
    fn estimated_pss_follows_the_rss() {
        let last = Sizes {
            pss_bytes: 60,
            pss_anon_bytes: 50,
            anon_bytes: 200,
        };
        assert_eq!(estimate(last, 210, 310).pss_bytes, 160);
        assert_eq!(estimate(last, 210, 100).pss_bytes, 0);
    }

    #[test]
    fn rollup_of_an_old_kernel_is_not_used() {
        assert_eq!(
            parse(b"Rss:   10 kB\nPss:   5 kB\nAnonymous:  4 kB\n"),
            None
        );
        let sizes = parse(b"Pss:   5 kB\nPss_Dirty: 4 kB\nPss_Anon: 3 kB\nAnonymous:  4 kB\n");
        assert_eq!(sizes.map(|sizes| sizes.pss_anon_bytes), Some(3 << 10));
    }
}
