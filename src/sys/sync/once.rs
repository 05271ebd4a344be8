//! A choice that is made once, by the first thread that needs it, while the others wait.
//!
//! Two states: unchosen and chosen. Who sees the choice may use what was set on the way to it.

use crate::sync::primitives::{self, AtomicU8, Ordering};

const UNCHOSEN: u8 = 0;
const CHOOSING: u8 = 1;

pub struct Once(AtomicU8);

impl Once {
    /// The least number that can be chosen.
    pub const FIRST: u8 = 2;

    pub const fn new() -> Self {
        Once(AtomicU8::new(UNCHOSEN))
    }

    /// Whether this is the choice. Says nothing of what was set on the way to it.
    #[inline(always)]
    pub fn is(&self, choice: u8) -> bool {
        self.0.load(Ordering::Relaxed) == choice
    }

    #[inline]
    pub fn is_made(&self) -> bool {
        self.0.load(Ordering::Acquire) >= Self::FIRST
    }

    /// Chooses by `choose`, unless that is done or under way. Afterwards it is made.
    #[cold]
    pub fn make(&self, choose: impl FnOnce() -> u8) {
        let claim =
            self.0
                .compare_exchange(UNCHOSEN, CHOOSING, Ordering::Acquire, Ordering::Acquire);
        match claim {
            // The store comes last: whoever sees the choice may use what it set.
            Ok(_) => self.0.store(choose(), Ordering::Release),
            Err(CHOOSING) => self.wait(),
            Err(_) => {}
        }
    }

    /// Another thread is choosing: it takes microseconds and waits for nobody.
    fn wait(&self) {
        while !self.is_made() {
            primitives::give_way();
        }
    }
}
