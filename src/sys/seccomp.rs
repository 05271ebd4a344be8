//! Decides which system calls the library may make without the risk that a seccomp filter kills the
//! process (docs/design/seccomp.md).
//!
//! Invariant: the policy is decided once, on first need, and only ever gets stricter. The library cannot
//! ask what a filter permits. So the decision rests on two observations: a filter that existed when
//! the library first looked, and the program's own request for one, which `abi::sandbox` sees.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering::Relaxed};

use rustix::fs::Access;

use crate::env::Extra;
use crate::{attention, config, proc::procfs};

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Policy {
    /// No call needed the decision so far. The program has not restricted itself.
    Undecided,
    /// No filter, or one that refuses calls instead of killing, as those of containers do.
    AllCalls,
    /// A filter of a service manager. It permits what usual programs need, and may kill for others:
    /// `pkey_mprotect`, `mincore`, `mbind`, `pidfd_getfd`, `sched_setaffinity`.
    CommonCalls,
    /// The program restricted itself: brk, mmap, munmap, mremap, mprotect, madvise and futex, which
    /// glibc's malloc makes.
    MallocCalls,
}

static POLICY: AtomicU8 = AtomicU8::new(Policy::Undecided as u8);
static PROGRAM_USES_KEYS: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Calls that filters of service managers permit and glibc's malloc does not make: files, sleeping,
/// yielding, msync.
#[inline]
pub fn allows_common_calls() -> bool {
    POLICY.load(Relaxed) != Policy::MallocCalls as u8
}

/// Calls that common filters omit: `pkey_mprotect`, `mincore` and `mbind`; in the governor also `pidfd_open`,
/// `pidfd_getfd`, and those that set its CPUs, its class and its priority.
pub fn allows_rare_calls() -> bool {
    let policy = POLICY.load(Relaxed);
    if policy == Policy::Undecided as u8 {
        return decide() == Policy::AllCalls as u8;
    }
    policy == Policy::AllCalls as u8
}

/// `pkey_mprotect`. A program that allocated a key shows that a filter, if any, permits such calls.
pub fn allows_protection_keys() -> bool {
    allows_common_calls() && PROGRAM_USES_KEYS.load(Relaxed) || allows_rare_calls()
}

pub fn note_protection_key() {
    PROGRAM_USES_KEYS.store(true, Relaxed);
}

/// The program is about to restrict itself, which it cannot undo. True for the first call.
pub fn restrict_to_malloc_calls() -> bool {
    POLICY.swap(Policy::MallocCalls as u8, Relaxed) != Policy::MallocCalls as u8
}

/// Children inherit the filter, and with this memory the decision.
#[cold]
#[inline(never)]
fn decide() -> u8 {
    let policy = if has_filter() && !is_container() {
        Policy::CommonCalls
    } else {
        Policy::AllCalls
    };
    // Fails if another thread has decided, or if the program has restricted itself.
    POLICY
        .compare_exchange(Policy::Undecided as u8, policy as u8, Relaxed, Relaxed)
        .map_or_else(|decided| decided, |_| policy as u8)
}

/// True, too, if `/proc` or the field is missing: to omit a few calls only costs time.
fn has_filter() -> bool {
    const FILTER_MODE: u64 = 2;
    let mut buffer = [0; 4096];
    procfs::read_file(c"/proc/self/status", &mut buffer)
        .and_then(|status| procfs::labelled_number(status, b"Seccomp:"))
        .is_none_or(|mode| mode == FILTER_MODE)
}

/// False for a service that a service manager runs inside a container: the filter may be the
/// manager's.
fn is_container() -> bool {
    let is_set = |variable| config::environment().extra(variable).is_some();
    let exists = |path| rustix::fs::access(path, Access::EXISTS).is_ok();
    !is_set(Extra::ServiceInvocation)
        && (is_set(Extra::Container)
            || is_set(Extra::Kubernetes)
            || exists(c"/.dockerenv")
            || exists(c"/run/.containerenv"))
}

/// The constructor and a child call it.
pub fn remember_process() {
    attention::detect_copies();
    PROCESS.store(this_process(), Relaxed);
}

/// True in a vfork child. It shares its parent's memory, but a filter that it installs restricts the
/// child alone.
pub fn is_vfork_child() -> bool {
    PROCESS.load(Relaxed) != this_process() && !attention::is_copy()
}

fn this_process() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
