//! Once-cells that never wait: threads that initialise one at the same time may each compute a
//! value, and one value wins.
//!
//! Not `std::sync::OnceLock`: a thread waits there for the thread that initialises. The child of a
//! fork does not have that thread. Where the initialisation must run once, use `sync::once`.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// A value that never changes once it is set. Setting it allocates. The value is never freed.
pub struct RacyOnceCell<T>(AtomicPtr<T>, PhantomData<T>);

// `T: Send`, too: a losing thread drops its own value, but all threads use the winner's.
impl<T: Send + Sync> RacyOnceCell<T> {
    pub const fn new() -> Self {
        RacyOnceCell(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the pointer is null or the box that `get_or_insert` published, which is never
        // freed or changed.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Returns the value. If there is none, calls `init`; another thread's value may win.
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.get_or_insert(init()),
        }
    }

    /// Sets the value unless there is one. Returns the value of the cell.
    #[cold]
    pub fn get_or_insert(&self, value: T) -> &T {
        let new = Box::into_raw(Box::new(value));
        match self
            .0
            .compare_exchange(ptr::null_mut(), new, Release, Acquire)
        {
            // SAFETY: the box is published now; a published box is never freed or changed.
            Ok(_) => unsafe { &*new },
            Err(published) => {
                // SAFETY: the box was not published, so this thread alone has its address.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: the exchange fails only if another thread has published a box, which is
                // never freed or changed.
                unsafe { &*published }
            }
        }
    }
}

/// A fact about the system. Threads that ask at the same time get the same answer.
pub struct RacyOnceBool(AtomicU8);

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

impl RacyOnceBool {
    pub const fn new() -> Self {
        RacyOnceBool(AtomicU8::new(UNKNOWN))
    }

    /// Returns the fact. If it is unknown, calls `init`, and returns false if `init` returns `None`;
    /// the next call tries again.
    pub fn get_or_try_init(&self, init: impl FnOnce() -> Option<bool>) -> bool {
        if self.0.load(Relaxed) == UNKNOWN {
            let fact = init().map_or(UNKNOWN, |fact| if fact { YES } else { NO });
            self.0.store(fact, Relaxed);
        }
        self.0.load(Relaxed) == YES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn first_value_stays() {
        let cell = RacyOnceCell::new();
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_init(|| 1), &1);
        assert_eq!(cell.get_or_init(|| unreachable!()), &1);
        assert_eq!(cell.get_or_insert(2), &1);
    }

    #[test]
    fn threads_that_initialise_at_the_same_time_get_the_same_value() {
        let (cell, both_initialise) = (RacyOnceCell::new(), Barrier::new(2));
        let address_for = |value: usize| {
            let init = || {
                both_initialise.wait();
                value
            };
            ptr::from_ref(cell.get_or_init(init)).addr()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| address_for(1));
            assert_eq!(address_for(2), other.join().unwrap());
        });
    }

    #[test]
    fn unknown_fact_is_asked_again() {
        let fact = RacyOnceBool::new();
        assert!(!fact.get_or_try_init(|| None));
        assert!(fact.get_or_try_init(|| Some(true)));
        assert!(fact.get_or_try_init(|| unreachable!()));
    }
}
