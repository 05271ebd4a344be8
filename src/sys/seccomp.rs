//! Whether the program has closed itself in. Behind a seccomp list that kills, malloc may make no system call but those
//! that glibc's malloc makes: brk, mmap, munmap, mremap, mprotect, madvise, futex. The list cannot be asked
//! what it holds, nor whether it is there, without a call that it may punish. So the program is watched on its way
//! in (`abi::sandbox`).
//!
//! A list that was there before the program, as a service manager's, lets it start, and mostly kills for calls that it was not
//! written for. Those that such lists leave out are then not made (`may_kill`). The lists of containers refuse instead.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use rustix::fs::Access;

use crate::env::Extra;
use crate::sync::racy_once::RacyOnceBool;
use crate::{config, proc::procfs};

static CLOSED: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// True from the moment when the program says that it goes in; there is no way out.
#[inline]
pub fn is_closed() -> bool {
    CLOSED.load(Relaxed)
}

pub fn close() {
    CLOSED.store(true, Relaxed);
}

/// False where a call that common lists leave out (`pkey_mprotect`, `mincore`, `mbind`, `pidfd_getfd`) is at worst refused.
pub fn may_kill() -> bool {
    is_closed() || LIST_BEFORE_US.get_or_try_init(|| Some(has_list() && !is_container()))
}

static HAS_KEYS: AtomicBool = AtomicBool::new(false);

/// The program has made a protection key, so that its list, if any, lets it.
pub fn has_keys() -> bool {
    HAS_KEYS.load(Relaxed)
}

pub fn note_key() {
    HAS_KEYS.store(true, Relaxed);
}

/// A list was there when we first looked, and not a container's. Children have it, too.
static LIST_BEFORE_US: RacyOnceBool = RacyOnceBool::new();

/// True, too, where /proc or this line is out of reach: to do without a few calls costs time alone.
#[cold]
#[inline(never)]
fn has_list() -> bool {
    const FILTER: u64 = 2;
    let mut buffer = [0; 4096];
    procfs::read_file(c"/proc/self/status", &mut buffer)
        .and_then(|status| procfs::labelled_number(status, b"Seccomp:"))
        .is_none_or(|mode| mode == FILTER)
}

/// What its manager runs inside a container is a service, not the container's own program.
fn is_container() -> bool {
    let told = |name| config::environment().extra(name).is_some();
    let exists = |path| rustix::fs::access(path, Access::EXISTS).is_ok();
    !told(Extra::ServiceInvocation)
        && (told(Extra::Container)
            || told(Extra::Kubernetes)
            || exists(c"/.dockerenv")
            || exists(c"/run/.containerenv"))
}

/// Called by the constructor, and in a forked child.
pub fn remember_process() {
    PROCESS.store(this_process(), Relaxed);
}

/// False in a vfork child, which uses its parent's memory and closes only itself in.
pub fn is_own_memory() -> bool {
    PROCESS.load(Relaxed) == this_process()
}

fn this_process() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
