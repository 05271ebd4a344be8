//! Limits by which the system refuses memory to this process, and what they leave.
//!
//! Invariant: `read`, the observed calls of the program (`lock_all`) and a fork change the limits; `left_bytes` only
//! measures.
//! Nothing here allocates.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::attention;
use crate::errno::SavedErrno;
use crate::proc::procfs;
use crate::seccomp;
use crate::sync::racy_once::RacyOnceBool;

const UNLIMITED: u64 = libc::RLIM_INFINITY;
/// The capability to lock any amount of memory.
const CAP_IPC_LOCK: u32 = 14;

static ADDRESS_SPACE: AtomicU64 = AtomicU64::new(UNLIMITED);
static DATA: AtomicU64 = AtomicU64::new(UNLIMITED);
/// `mlockall` locks each mapping, and RLIMIT_MEMLOCK limits their sum.
static ALL_IS_LOCKED: AtomicBool = AtomicBool::new(false);
static STRICT_COMMIT: RacyOnceBool = RacyOnceBool::new();
/// One of the limits above is set.
static ANY: AtomicBool = AtomicBool::new(false);

/// True for the resources whose limits this module reads.
pub fn are_read_from(resource: u32) -> bool {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA, libc::RLIMIT_MEMLOCK].contains(&resource)
}

/// Reads the limits: at the start, and when they may have changed.
pub fn read() {
    if seccomp::allows_common_calls() {
        ADDRESS_SPACE.store(soft_limit(libc::RLIMIT_AS), Relaxed);
        DATA.store(soft_limit(libc::RLIMIT_DATA), Relaxed);
        update();
    }
}

/// The program locked all its memory (`mlockall`), or unlocked it.
pub fn lock_all(is_locked: bool) {
    ALL_IS_LOCKED.store(is_locked, Relaxed);
    update();
}

/// A child of fork inherits no memory locks.
pub fn after_fork_in_child() {
    if ALL_IS_LOCKED.load(Relaxed) {
        lock_all(false);
    }
}

fn update() {
    let limits = [ADDRESS_SPACE.load(Relaxed), DATA.load(Relaxed)];
    let is_limited = limits.iter().any(|limit| *limit != UNLIMITED);
    let is_locked = ALL_IS_LOCKED.load(Relaxed);
    ANY.store(is_limited || is_locked || has_strict_commit(), Relaxed);
    attention::set(attention::ROOM);
}

/// The system may refuse memory to this process.
#[inline]
pub fn is_any_set() -> bool {
    ANY.load(Relaxed)
}

/// RLIMIT_AS or RLIMIT_DATA is set.
pub fn is_address_space_limited() -> bool {
    [libc::RLIMIT_AS, libc::RLIMIT_DATA]
        .into_iter()
        .any(|resource| soft_limit(resource) != UNLIMITED)
}

/// `vm.overcommit_memory` is 2: the system may refuse any mapping.
pub fn has_strict_commit() -> bool {
    STRICT_COMMIT.get_or_try_init(|| {
        if !seccomp::allows_common_calls() {
            return None;
        }
        let mut buffer = [0; 32];
        let mode = procfs::read_file(c"/proc/sys/vm/overcommit_memory", &mut buffer);
        Some(mode.and_then(procfs::leading_number) == Some(2))
    })
}

/// The bytes that the process may still map under all limits. 0 if one is set and the use cannot be measured.
pub fn left_bytes() -> u64 {
    if !seccomp::allows_common_calls() {
        return 0;
    }
    let mut left = left_to_map().unwrap_or(0);
    if has_strict_commit() {
        left = left.min(left_to_commit().unwrap_or(0));
    }
    if ALL_IS_LOCKED.load(Relaxed) {
        left = left.min(left_to_lock().unwrap_or(0));
    }
    left
}

/// Under RLIMIT_AS and RLIMIT_DATA.
fn left_to_map() -> Option<u64> {
    let (address_space, data) = (ADDRESS_SPACE.load(Relaxed), DATA.load(Relaxed));
    if (address_space, data) == (UNLIMITED, UNLIMITED) {
        return Some(UNLIMITED);
    }
    let mut buffer = [0; 128];
    let statm = procfs::read_file(c"/proc/self/statm", &mut buffer)?;
    let mut fields = statm.split(|&byte| byte == b' ');
    let size_pages = procfs::leading_number(fields.next()?)?;
    // The sixth field also counts stacks, which RLIMIT_DATA does not.
    let data_pages = procfs::leading_number(fields.nth(4)?)?;
    let page = procfs::page_bytes() as u64;
    let left = address_space.saturating_sub(size_pages * page);
    Some(left.min(data.saturating_sub(data_pages * page)))
}

fn left_to_commit() -> Option<u64> {
    let mut buffer = [0; 4096];
    let text = procfs::read_file(c"/proc/meminfo", &mut buffer)?;
    let limit_kb = procfs::labelled_number(text, b"CommitLimit:")?;
    let used_kb = procfs::labelled_number(text, b"Committed_AS:")?;
    Some(limit_kb.saturating_sub(used_kb) << 10)
}

fn left_to_lock() -> Option<u64> {
    let mut buffer = [0; 4096];
    let text = procfs::read_file(c"/proc/self/status", &mut buffer)?;
    let limit = soft_limit(libc::RLIMIT_MEMLOCK);
    if limit == UNLIMITED || has_capability(text, CAP_IPC_LOCK) {
        return Some(UNLIMITED);
    }
    let locked_kb = procfs::labelled_number(text, b"VmLck:")?;
    Some(limit.saturating_sub(locked_kb << 10))
}

/// The line `CapEff:` has the effective capabilities.
fn has_capability(status: &[u8], number: u32) -> bool {
    procfs::labelled_set(status, b"CapEff:").is_some_and(|bits| bits >> number & 1 == 1)
}

/// Not getrlimit: a tracer may interpose it and allocate.
fn soft_limit(resource: u32) -> u64 {
    let _errno = SavedErrno::save();
    let new = ptr::null::<libc::rlimit>();
    let mut limit = libc::rlimit {
        rlim_cur: UNLIMITED,
        rlim_max: UNLIMITED,
    };
    // SAFETY: without a new limit the call only fills `limit`.
    unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, new, &raw mut limit) };
    limit.rlim_cur
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_all_is_left() {
        read();
        assert!(!is_address_space_limited());
        assert_eq!(left_to_map(), Some(UNLIMITED));
    }

    #[test]
    fn a_capability_is_one_bit_of_the_effective_set() {
        let status = b"CapPrm:\t0000000000004000\nCapEff:\t0000000000004001\nCapBnd:\t0\n";
        assert!(has_capability(status, CAP_IPC_LOCK) && has_capability(status, 0));
        assert!(!has_capability(status, 1));
        assert!(!has_capability(b"Name:\tx\n", 0));
    }

    #[test]
    fn committed_memory_is_below_or_at_its_limit() {
        assert!(left_to_commit().is_some() && left_to_lock().is_some());
    }
}
