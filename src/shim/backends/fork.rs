//! jemalloc around a fork. glibc handles its own locks, and the recycler has its own protocol.
//!
//! jemalloc's handlers hold its locks across a fork; `jemalloc::libc_calls` intercepts their registration, and
//! this module calls them. In a program with one thread only the governor could hold one of these locks, and
//! it is quiesced during the fork. There the locks are not taken, so a signal handler may fork at any point.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::backends::{choose, jemalloc};
use flarena_sys::{sync::stdio, thread::helper, thread_pointer};

/// Token of the thread that is between `before_fork` and its counterpart; 0: none.
static FORKING: AtomicU64 = AtomicU64::new(0);
/// Depth of nested forks from handlers and signals, which change nothing.
static NESTED: AtomicU32 = AtomicU32::new(0);
/// `before_fork` took jemalloc's locks.
static LOCKED: AtomicBool = AtomicBool::new(false);

pub fn before_fork(is_governor_quiet: bool) {
    if !choose::is_jemalloc() {
        return;
    }
    let me = thread_pointer::token();
    if FORKING.load(Relaxed) == me {
        NESTED.fetch_add(1, Relaxed);
        return;
    }
    let alone = is_governor_quiet && helper::program_has_one_thread();
    if !alone {
        jemalloc::fork::await_purge();
        stdio::lock_list();
        jemalloc::fork::take_locks();
    }
    LOCKED.store(!alone, Relaxed);
    FORKING.store(me, Relaxed);
}

pub fn after_fork_in_parent() {
    if !ends_outermost_fork() {
        return;
    }
    let locked = LOCKED.load(Relaxed);
    FORKING.store(0, Relaxed);
    if locked {
        jemalloc::fork::release_locks();
        stdio::unlock_list();
    }
}

pub fn after_fork_in_child() {
    if !ends_outermost_fork() {
        return;
    }
    // Also if no lock was taken: jemalloc's lists still hold the thread cache of the governor, which is gone.
    if LOCKED.load(Relaxed) || helper::exists() {
        jemalloc::fork::renew_locks();
    }
    if LOCKED.load(Relaxed) {
        stdio::reset_list();
    }
    FORKING.store(0, Relaxed);
}

/// True if this ends the outermost fork.
fn ends_outermost_fork() -> bool {
    if !choose::is_jemalloc() {
        return false;
    }
    if NESTED.load(Relaxed) > 0 {
        NESTED.fetch_sub(1, Relaxed);
        return false;
    }
    // A fork that began before jemalloc was chosen has prepared nothing.
    FORKING.load(Relaxed) == thread_pointer::token()
}
