//! A lock for the malloc path: one word, no allocation, no thread-local state, a futex if contended.
//!
//! Invariant: the thread whose token the word holds, and no other, has a `Guard` and reaches the value.
//! The word names the holder so that the child of a fork can tell whether its parent's other threads
//! held the lock. `std::sync::Mutex` and parking_lot may allocate, or poison the lock.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::sync::primitives::{self, AtomicU64, Ordering, MAX_FORK_CHECKS, SPINS};

const FREE: u64 = 0;
/// A flag beside the holder's token, whose low bits are zero: threads sleep until the lock is free.
/// The futex compares the low half of the word, which contains the flags and differs between most
/// tokens.
const CONTENDED: u64 = 1;
/// A flag: a thread is about to fork, and other threads should not take the lock.
const FORKING: u64 = 2;
const FLAGS: u64 = CONTENDED | FORKING;

/// Between two checks of a lock that a fork concerns.
const FORK_CHECK_INTERVAL: Duration = Duration::from_micros(100);

/// A value behind a futex lock.
pub struct Lock<T> {
    word: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a `Guard`, and `word` admits one `Guard` at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Proof that the calling thread holds the lock. Releases it when dropped.
pub struct Guard<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Lock {
            word: AtomicU64::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let me = primitives::token();
        if !self.replace(FREE, me) {
            self.lock_contended(me);
        }
        Guard(self)
    }

    #[inline]
    fn replace(&self, from: u64, to: u64) -> bool {
        self.word
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_contended(&self, me: u64) {
        for _ in 0..SPINS {
            primitives::spin_loop();
            let seen = self.word.load(Ordering::Relaxed);
            if seen == FREE && self.replace(FREE, me) {
                return;
            }
            if seen & CONTENDED != 0 {
                break;
            }
        }
        let mut fork_checks = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if seen & FORKING != 0 && fork_checks < MAX_FORK_CHECKS {
                fork_checks += 1;
                primitives::sleep(FORK_CHECK_INTERVAL);
            } else if seen & !FLAGS == FREE {
                // Contended: other threads may still sleep, as an unlock wakes only one.
                if self.replace(seen, seen | me | CONTENDED) {
                    return;
                }
            } else if seen & CONTENDED != 0 || self.replace(seen, seen | CONTENDED) {
                primitives::wait(&self.word, seen | CONTENDED);
            }
        }
    }

    /// Takes the lock if it is free. Never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.replace(FREE, primitives::token()).then(|| Guard(self))
    }

    /// Takes the lock, or gives up after so many milliseconds, or at once if the calling thread holds it.
    pub fn lock_within(&self, milliseconds: u32) -> Option<Guard<'_, T>> {
        let tries = if self.is_held_by_me() {
            0
        } else {
            milliseconds
        };
        (0..tries).find_map(|_| {
            let guard = self.try_lock();
            if guard.is_none() {
                primitives::sleep(Duration::from_millis(1));
            }
            guard
        })
    }

    /// True if the calling thread holds the lock, so that `lock` would wait for ever.
    pub fn is_held_by_me(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !FLAGS == primitives::token()
    }

    /// In the child of a fork: takes the lock if a thread of the parent held it that the child does
    /// not have. The value may then be half changed. `None` if the lock is free, or if the thread that
    /// forked holds it.
    ///
    /// # Safety
    /// Only in the child, before it has other threads.
    pub unsafe fn take_over_after_fork(&self) -> Option<Guard<'_, T>> {
        let me = primitives::token();
        let holder = self.word.load(Ordering::Relaxed) & !FLAGS;
        if holder == FREE || holder == me {
            return None;
        }
        self.word.store(me, Ordering::Relaxed);
        Some(Guard(self))
    }

    /// In the child of a fork: replaces a value that another thread of the parent was about to change, and frees the lock.
    /// Does not drop the old value, which may be half changed.
    ///
    /// # Safety
    /// Only in the child, before it has other threads.
    pub unsafe fn reset_after_fork(&self)
    where
        T: Default,
    {
        // SAFETY: by this function's contract. The guard is the only one, so no other code reaches the value.
        unsafe {
            if let Some(guard) = self.take_over_after_fork() {
                guard.0.value.get().write(T::default());
            }
        }
    }

    /// Before a fork: asks other threads not to take the lock, and waits for the current holder. Other
    /// threads and this function each wait some milliseconds at most, because either may wait for the
    /// other.
    pub fn quiesce_for_fork(&self) {
        let me = primitives::token();
        for _ in 0..MAX_FORK_CHECKS {
            let holder = self.word.fetch_or(FORKING, Ordering::Acquire) & !FLAGS;
            if holder == FREE || holder == me {
                return;
            }
            primitives::sleep(FORK_CHECK_INTERVAL);
        }
    }

    /// After a fork, in the parent and in the child.
    pub fn resume_after_fork(&self) {
        self.word.fetch_and(!FORKING, Ordering::Release);
    }

    #[inline]
    fn unlock(&self) {
        // Clears FORKING, too: the thread that forks then sees the lock free, and sets the flag again.
        if self.word.swap(FREE, Ordering::Release) & CONTENDED != 0 {
            primitives::wake_one(&self.word);
        }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one alive, so no other code reaches the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one alive, so no other code reaches the value.
        unsafe { &mut *self.0.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_exclude_each_other() {
        static SUM: Lock<u64> = Lock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20_000).for_each(|_| *SUM.lock() += 1));
            }
        });
        assert_eq!(*SUM.lock(), 80_000);
    }

    #[test]
    fn lock_of_a_thread_that_is_gone_is_taken_over() {
        let lock = Lock::new(1);
        // SAFETY: no other thread knows this lock.
        unsafe {
            assert!(lock.take_over_after_fork().is_none(), "the lock is free");
            let mine = lock.lock();
            assert!(
                lock.take_over_after_fork().is_none(),
                "this thread holds the lock"
            );
            drop(mine);
            std::thread::scope(|scope| {
                scope.spawn(|| std::mem::forget(lock.lock()));
            });
            assert_eq!(lock.take_over_after_fork().as_deref(), Some(&1));
            lock.reset_after_fork();
            assert_eq!(*lock.lock(), 1, "the lock is free");
            std::thread::scope(|scope| {
                scope.spawn(|| std::mem::forget(lock.lock()));
            });
            lock.reset_after_fork();
        }
        assert_eq!(*lock.lock(), 0);
    }

    #[test]
    fn fork_and_other_threads_wait_for_each_other_for_a_bounded_time() {
        let lock = Lock::new(0);
        let held = lock.lock();
        lock.quiesce_for_fork();
        drop(held);
        std::thread::scope(|scope| {
            let held = lock.lock();
            scope.spawn(|| lock.quiesce_for_fork());
            std::thread::sleep(Duration::from_millis(1));
            drop(held);
        });
        assert!(lock.try_lock().is_none(), "a fork is in progress");
        drop(lock.lock());
        lock.quiesce_for_fork();
        lock.resume_after_fork();
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn lock_within_gives_up_on_a_lock_that_stays_held() {
        let lock = Lock::new(1);
        let held = lock.lock_within(1);
        assert!(held.is_some() && lock.lock_within(u32::MAX).is_none());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(lock.lock_within(3).is_none()));
        });
        drop(held);
        assert_eq!(lock.lock_within(1).as_deref(), Some(&1));
    }

    #[test]
    fn try_lock_of_a_held_lock_returns_at_once() {
        let lock = Lock::new(1);
        let held = lock.try_lock();
        assert!(held.is_some() && lock.try_lock().is_none());
        drop(held);
        assert_eq!(lock.try_lock().as_deref(), Some(&1));
    }
}
