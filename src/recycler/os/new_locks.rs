//! Whether what is mapped from now on is locked: `mlockall(MCL_FUTURE)`.
//!
//! The system tells by locking a mapping. To ask takes a call that sleeps where other threads change the address space, so
//! an answer holds for one tick of the coarse clock (1 to 10 ms).

use crate::os::syscalls;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The tick of the last answer and, in the lowest bit, the answer.
pub struct NewLocks(AtomicU64);

const NEVER: u64 = u64::MAX;

impl NewLocks {
    pub const fn new() -> Self {
        NewLocks(AtomicU64::new(NEVER))
    }

    pub fn are_wanted(&self, now_ms: u32, page_bytes: usize) -> bool {
        self.answer(now_ms, || syscalls::locks_new_mappings(page_bytes))
    }

    fn answer(&self, now_ms: u32, ask: impl FnOnce() -> bool) -> bool {
        let known = self.0.load(Relaxed);
        if known >> 1 == u64::from(now_ms) {
            return known & 1 == 1;
        }
        let wanted = ask();
        let answer = u64::from(now_ms) << 1 | u64::from(wanted);
        self.0.store(answer, Relaxed);
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_one_tick() {
        let locks = NewLocks::new();
        assert!(locks.answer(0, || true));
        assert!(locks.answer(0, || unreachable!("asked twice within a tick")));
        assert!(!locks.answer(4, || false));
        assert!(!locks.answer(4, || unreachable!("asked twice within a tick")));
        assert!(locks.answer(u32::MAX, || true));
    }
}
