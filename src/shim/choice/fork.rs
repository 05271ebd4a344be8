//! jemalloc around a fork. glibc looks after itself, and the recycler needs nobody (`recycler::fork`).
//!
//! jemalloc holds its locks across a fork, by handlers that it would register itself (`jemalloc::libc_calls`
//! keeps them for here). In a program with one thread nobody else can hold one but our own thread, which
//! rests meanwhile: then they are left alone. So a signal handler may fork, whatever it interrupted.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::choice::{choose, jemalloc};
use flarena_sys::{sync::stdio, thread};

/// The thread between `before_fork` and its counterpart; 0 for none.
static FORKING: AtomicU64 = AtomicU64::new(0);
/// How often it forks again meanwhile, from handlers and signals: those change nothing.
static NESTED: AtomicU32 = AtomicU32::new(0);
/// jemalloc's own handler ran.
static LOCKED: AtomicBool = AtomicBool::new(false);

pub fn before_fork() {
    if !choose::is_jemalloc() {
        return;
    }
    let me = thread::token();
    if FORKING.load(Relaxed) == me {
        NESTED.fetch_add(1, Relaxed);
        return;
    }
    let alone = thread::is_only_one_of_program() && (!thread::has_ours() || thread::pause());
    if !alone {
        stdio::lock_list();
        jemalloc::fork::take_locks();
    }
    LOCKED.store(!alone, Relaxed);
    FORKING.store(me, Relaxed);
}

pub fn after_fork_in_parent() {
    if !begins_to_end() {
        return;
    }
    let locked = LOCKED.load(Relaxed);
    FORKING.store(0, Relaxed);
    if locked {
        jemalloc::fork::release_locks();
        stdio::unlock_list();
    }
    thread::resume();
}

pub fn after_fork_in_child() {
    if !begins_to_end() {
        return;
    }
    // Also where no lock was taken: our thread's cache is on jemalloc's lists, and its memory is gone.
    if LOCKED.load(Relaxed) || thread::has_ours() {
        jemalloc::fork::renew_locks();
    }
    if LOCKED.load(Relaxed) {
        stdio::reset_list();
    }
    FORKING.store(0, Relaxed);
}

/// True for the end of the outermost fork.
fn begins_to_end() -> bool {
    if !choose::is_jemalloc() {
        return false;
    }
    if NESTED.load(Relaxed) > 0 {
        NESTED.fetch_sub(1, Relaxed);
        return false;
    }
    // A fork that jemalloc's choice came after has prepared nothing.
    FORKING.load(Relaxed) == thread::token()
}
