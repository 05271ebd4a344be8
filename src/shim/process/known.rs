//! A fact about the system, once it is known. Threads that ask at the same time learn the same.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

pub struct Known(AtomicU8);

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

impl Known {
    pub const fn not_yet() -> Self {
        Known(AtomicU8::new(UNKNOWN))
    }

    /// None: there is no telling now; false until there is.
    pub fn or_ask(&self, ask: impl FnOnce() -> Option<bool>) -> bool {
        if self.0.load(Relaxed) == UNKNOWN {
            let answer = ask().map_or(UNKNOWN, |is_so| if is_so { YES } else { NO });
            self.0.store(answer, Relaxed);
        }
        self.0.load(Relaxed) == YES
    }
}
