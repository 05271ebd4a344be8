//! The signals of a thread that forks.
//!
//! libc holds a lock of its own from its last handler before the fork to the first after it, where the process has other
//! threads, and a signal handler that forks in between waits for it for ever. A program of one thread that has
//! handlers which fork is right without us, and our thread is all that makes libc take that lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::thread::helper;

/// Size of the kernel's signal set.
const SET_BYTES: usize = 8;
/// The thread's mask while all signals are blocked. One word suffices: the program has one thread.
static BEFORE: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicBool = AtomicBool::new(false);

/// Before a fork, in a program of one thread that has ours beside it.
pub fn hold_for_fork() {
    if helper::exists() && helper::program_has_one_thread() {
        BEFORE.store(set_mask(u64::MAX), Relaxed);
        HELD.store(true, Relaxed);
    }
}

/// Restores the mask after the fork, in the parent and in the child.
pub fn end_hold() {
    if HELD.swap(false, Relaxed) {
        set_mask(BEFORE.load(Relaxed));
    }
}

/// Sets the mask and returns the previous one.
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
