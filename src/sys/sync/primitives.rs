//! The parts of the machine that `lock` and `once` use: atomics, futex, thread tokens and sleeping.
//! `tests/loom/primitives.rs` replaces this file under `--cfg loom`.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::errno::SavedErrno;

pub use crate::thread_pointer::token;
pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};

/// Critical sections last some hundred nanoseconds, so a short spin usually sees the end of one.
pub const SPINS: u32 = 60;

/// How often a thread checks, a tenth of a millisecond apart, before it ignores a fork; and how often
/// a fork checks before it ignores the lock's holder.
pub const MAX_FORK_CHECKS: u32 = 50;

/// Sleeps less than a second. A signal may end the sleep. Not a cancellation point. Uses futex, which a
/// seccomp filter for glibc's malloc permits, unlike nanosleep.
pub fn sleep(duration: Duration) {
    static NEVER_WOKEN: AtomicU32 = AtomicU32::new(0);
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: duration.subsec_nanos().into(),
    };
    futex(&NEVER_WOKEN, libc::FUTEX_WAIT, 0, &raw const time);
}

/// Sleeps while the low half of the word equals that of `value`. May return earlier.
pub fn wait(word: &AtomicU64, value: u64) {
    futex(
        low_half(word),
        libc::FUTEX_WAIT,
        value as u32,
        std::ptr::null(),
    );
}

pub fn wake_one(word: &AtomicU64) {
    futex(low_half(word), libc::FUTEX_WAKE, 1, std::ptr::null());
}

/// A futex has 32 bits.
fn low_half(word: &AtomicU64) -> &AtomicU32 {
    const LOW: usize = if cfg!(target_endian = "little") { 0 } else { 1 };
    // SAFETY: the half is inside the word, is aligned, and lives as long. Both are accessed only
    // atomically, and the half by the kernel alone.
    unsafe { &*word.as_ptr().cast::<AtomicU32>().add(LOW) }
}

/// Keeps errno, because the program's calls of malloc and free wait here.
fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, time_limit: *const libc::timespec) {
    let _errno = SavedErrno::save();
    // SAFETY: futex reads only `word` and the time limit, which is null or outlives the call. The
    // caller handles a spurious or interrupted return.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            time_limit,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno;

    #[test]
    fn a_wait_that_the_kernel_refuses_keeps_errno() {
        errno::set(7);
        wait(&AtomicU64::new(1), 2);
        assert_eq!(errno::get(), 7);
    }
}
