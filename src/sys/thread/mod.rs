//! The calling thread, without thread-local variables: its identity, yielding and sleeping.
//!
//! The malloc path may call everything in this file. It needs no lock and no allocation, and makes no
//! system call that a seccomp filter may punish.

pub mod cancellation;
pub mod cpu;
pub mod helper;
pub mod signals;
pub mod spawn;

use std::time::Duration;

use crate::{proc::procfs, seccomp};

/// Identifies the calling thread within the process: its thread pointer. Not zero, and even. The
/// thread that forks has the same token in the child.
#[inline(always)]
pub fn token() -> u64 {
    let token: u64;
    #[cfg(miri)]
    {
        // Miri does not support inline assembly.
        thread_local!(static HERE: u64 = const { 0 });
        token = HERE.with(|here| std::ptr::from_ref(here).addr() as u64);
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the psABI stores the thread pointer at the address that it points to. libc sets it
    // before any code of a library runs.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) token, options(nostack, preserves_flags, readonly, pure));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: every program may read this register.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) token, options(nostack, preserves_flags, nomem, pure));
    }
    token
}

/// The thread pointer as an address. libc keeps the thread's own data around it.
#[inline(always)]
pub fn pointer() -> *const u8 {
    std::ptr::with_exposed_provenance(token() as usize)
}

/// Lets other threads run. For a thread that waits for another thread's system call.
pub fn yield_now() {
    if seccomp::allows_common_calls() {
        std::thread::yield_now();
    } else {
        // glibc's malloc does not call sched_yield, so a filter may kill for it.
        std::hint::spin_loop();
    }
}

/// True if the calling thread is the program's only one; the helper thread does not count. False if
/// the kernel cannot be asked.
pub fn program_has_one_thread() -> bool {
    let threads = seccomp::allows_common_calls()
        .then(procfs::threads)
        .flatten();
    threads.is_some_and(|count| count <= 1 + u64::from(helper::exists()))
}

/// Sleeps a millisecond. A signal may end the sleep.
pub fn sleep_1ms() {
    sleep(Duration::from_millis(1));
}

/// Sleeps less than a second. A signal may end the sleep. Not a cancellation point.
pub fn sleep(duration: Duration) {
    let time = rustix::thread::Timespec {
        tv_sec: 0,
        tv_nsec: duration.subsec_nanos().into(),
    };
    let _ = rustix::thread::nanosleep(&time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_different_tokens() {
        let here = token();
        assert_eq!(here, token());
        assert!(here != 0 && here.is_multiple_of(2));
        let there = std::thread::scope(|scope| scope.spawn(token).join().unwrap());
        assert_ne!(here, there);
    }
}
