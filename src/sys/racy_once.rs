//! A value that is found once and kept for ever.
//!
//! Threads that come at the same time each find it, and one of the values is kept: nobody waits for another.
//! `std::sync::OnceLock` does wait, in the child of a fork for a thread that it does not have.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Allocates when it is set, and never frees what it keeps.
pub struct Found<T>(AtomicPtr<T>, PhantomData<T>);

// Whoever finds it, any thread may use it, and the one that comes too late drops its own.
impl<T: Send + Sync> Found<T> {
    pub const fn new() -> Self {
        Found(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    /// None until somebody has found it.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or the one value that keep() put there, which is never freed nor changed.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// What was found first, by `find` if by nobody else.
    pub fn get_or_find(&self, find: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(found) => found,
            None => self.keep(find()),
        }
    }

    /// Keeps the value, unless there is one. Answers the one that is kept.
    #[cold]
    pub fn keep(&self, value: T) -> &T {
        let ours = Box::into_raw(Box::new(value));
        let put = self
            .0
            .compare_exchange(ptr::null_mut(), ours, Release, Acquire);
        match put {
            // SAFETY: a live box, which from now on nobody frees or changes.
            Ok(_) => unsafe { &*ours },
            Err(theirs) => {
                // SAFETY: it was not put there, so nobody else has it.
                drop(unsafe { Box::from_raw(ours) });
                // SAFETY: not null, so the box that another thread put there.
                unsafe { &*theirs }
            }
        }
    }
}

/// A fact about the system. Threads that ask at the same time learn the same.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn what_is_found_is_found_once() {
        let found = Found::new();
        assert_eq!(found.get(), None);
        assert_eq!(found.get_or_find(|| 1), &1);
        assert_eq!(found.get_or_find(|| unreachable!()), &1);
        assert_eq!(found.keep(2), &1);
    }

    #[test]
    fn threads_that_find_it_at_the_same_time_get_the_same_one() {
        let (found, both) = (Found::new(), Barrier::new(2));
        let find = |value: usize| {
            let find = || {
                // Nobody waits for the other: both are here at once.
                both.wait();
                value
            };
            ptr::from_ref(found.get_or_find(find)).addr()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| find(1));
            assert_eq!(find(2), other.join().unwrap());
        });
    }
}
