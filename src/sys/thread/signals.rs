//! The signals of a thread that forks.
//!
//! libc holds a lock of its own from its last handler before the fork to the first after it, where the process has other
//! threads, and a signal handler that forks in between waits for it for ever. A program of one thread that has
//! handlers which fork is right without us, and our thread is all that makes libc take that lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::thread::helper;

/// What the kernel calls a set of signals.
const SET_BYTES: usize = 8;
/// The thread's own, while all are held. One word: no other thread of the program is there to fork.
static BEFORE: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicBool = AtomicBool::new(false);

/// Before a fork, in a program of one thread that has ours beside it.
pub fn hold_for_fork() {
    if helper::exists() && helper::program_has_one_thread() {
        BEFORE.store(set_mask(u64::MAX), Relaxed);
        HELD.store(true, Relaxed);
    }
}

/// After it, in the parent and in the child.
pub fn end_hold() {
    if HELD.swap(false, Relaxed) {
        set_mask(BEFORE.load(Relaxed));
    }
}

/// The mask before.
fn set_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: both sets are locals of the size that is said.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            SET_BYTES,
        );
    }
    before
}
