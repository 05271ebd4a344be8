//! What the lock and the choice of the allocator take from the machine. `models` puts a model of it in this place, and
//! tries every order in which threads can go.

use std::sync::atomic::AtomicU32;

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};

/// Critical sections last some hundred nanoseconds: a short spin usually sees the end of one.
pub const SPINS: u32 = 60;

/// How often a thread looks again before it disregards a fork, and a fork before it disregards a holder; a
/// tenth of a millisecond between the looks.
pub const MAX_FORK_CHECKS: u32 = 50;

pub fn yield_now() {
    rustix::thread::sched_yield();
}

/// Sleeps while the low half of the word is that of `value`. May come back earlier.
pub fn wait(word: &AtomicU64, value: u64) {
    futex(half(word), libc::FUTEX_WAIT, value as u32);
}

pub fn wake_one(word: &AtomicU64) {
    futex(half(word), libc::FUTEX_WAKE, 1);
}

/// What a futex can look at.
fn half(word: &AtomicU64) -> &AtomicU32 {
    const LOW: usize = if cfg!(target_endian = "little") { 0 } else { 1 };
    // SAFETY: the half lies inside the word, is aligned, and lives as long; both are only ever
    // touched atomically, and this one by the kernel alone.
    unsafe { &*word.as_ptr().cast::<AtomicU32>().add(LOW) }
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    // SAFETY: futex reads `word` only, which outlives the call; a null timeout means none.
    // A spurious or interrupted return is handled by the caller's loop.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            std::ptr::null::<libc::timespec>(),
        );
    }
}
