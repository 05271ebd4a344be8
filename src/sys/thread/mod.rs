//! The calling thread, without thread-local variables: yielding, sleeping, signal stack.
//!
//! Invariant: nothing in this file allocates or takes a lock, so the malloc path may call it.

pub mod cancellation;
pub mod helper;
pub mod signals;
pub mod spawn;

use std::ptr;
use std::time::Duration;

use crate::seccomp;
pub use crate::sync::primitives::sleep;

/// Lets other threads of the same or a higher priority run. For a thread that waits for another thread's
/// system call. A wait that does not end after some yields must sleep, because that thread may have a
/// lower priority.
pub fn yield_now() {
    if seccomp::allows_common_calls() {
        std::thread::yield_now();
    } else {
        // glibc's malloc does not call sched_yield, so a filter may kill for it.
        std::hint::spin_loop();
    }
}

/// Sleeps a millisecond. A signal may end the sleep.
pub fn sleep_1ms() {
    sleep(Duration::from_millis(1));
}

/// The size of the alternate stack on which the calling thread handles a signal. `None` on its usual stack,
/// and where a filter may kill for the question.
pub fn signal_stack_bytes() -> Option<usize> {
    let mut stack = libc::stack_t {
        ss_sp: ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: the call only fills `stack`.
    let is_known = seccomp::allows_common_calls()
        && unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) } == 0;
    (is_known && stack.ss_flags & libc::SS_ONSTACK != 0).then_some(stack.ss_size)
}
