//! Blocks signals during a fork, in a program whose only other thread is the library's.
//!
//! During a fork of a process with several threads, libc holds a lock. If a signal handler that forks
//! runs in that time, it waits for the lock for ever. A program with one thread may have such a
//! handler: libc takes the lock only because the library's thread exists.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::thread::helper;

/// Size of the kernel's signal set.
const SET_BYTES: usize = 8;
/// The thread's mask before signals were blocked. One word suffices, because the program has one thread.
static SAVED_MASK: AtomicU64 = AtomicU64::new(0);
static ARE_BLOCKED: AtomicBool = AtomicBool::new(false);

/// Before a fork: blocks all signals if the program has one thread and the library another.
pub fn block_for_fork() {
    if helper::exists() && helper::program_has_one_thread() {
        SAVED_MASK.store(set_mask(u64::MAX), Relaxed);
        ARE_BLOCKED.store(true, Relaxed);
    }
}

/// After the fork, in the parent and in the child: restores the mask.
pub fn restore_after_fork() {
    if ARE_BLOCKED.swap(false, Relaxed) {
        set_mask(SAVED_MASK.load(Relaxed));
    }
}

/// Sets the mask and returns the previous one.
fn set_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: both pointers are to locals of SET_BYTES bytes.
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
