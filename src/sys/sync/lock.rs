//! A lock for the malloc path: one word, no allocation, no thread-local state, a futex when contended.
//!
//! `std::sync::Mutex` and parking_lot may allocate or poison; neither is allowed inside malloc.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::sync::primitives::{self, AtomicU64, Ordering, COURTESY_LOOKS, SPINS};
use crate::thread;

const FREE: u64 = 0;
/// Beside the holder's token, whose low bits are zero: somebody sleeps until the lock is free. Sleepers look at the low
/// half of the word: these bits are in it, and most tokens differ there, too.
const CONTENDED: u64 = 1;
/// Some thread is about to fork, and asks the others not to begin.
const FORKING: u64 = 2;
const MARKS: u64 = CONTENDED | FORKING;

/// Between two looks at a lock that a fork waits for.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// A value behind a futex lock, which tells who holds it: the child of a fork must know.
pub struct Lock<T> {
    word: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a `Guard`, and `word` admits one `Guard` at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Proof of holding the lock; gives it back when dropped.
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
        let me = thread::token();
        if !self.take(FREE, me) {
            self.wait(me);
        }
        Guard(self)
    }

    #[inline]
    fn take(&self, from: u64, to: u64) -> bool {
        self.word
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait(&self, me: u64) {
        for _ in 0..SPINS {
            primitives::spin_loop();
            let seen = self.word.load(Ordering::Relaxed);
            if seen == FREE && self.take(FREE, me) {
                return;
            }
            if seen & CONTENDED != 0 {
                break;
            }
        }
        let mut looks = 0;
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            if seen & FORKING != 0 && looks < COURTESY_LOOKS {
                looks += 1;
                thread::sleep(LOOK_AGAIN);
            } else if seen & !MARKS == FREE {
                // Contended: others may sleep beside us, and only one was woken.
                if self.take(seen, seen | me | CONTENDED) {
                    return;
                }
            } else if seen & CONTENDED != 0 || self.take(seen, seen | CONTENDED) {
                primitives::wait(&self.word, seen | CONTENDED);
            }
        }
    }

    /// The lock, unless somebody holds it. Never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.take(FREE, thread::token()).then(|| Guard(self))
    }

    /// The calling thread holds it: a second look would wait for ever.
    pub fn is_mine(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !MARKS == thread::token()
    }

    /// In the child of a fork: the lock, where a thread of the parent held it that the child does not
    /// have. The value may then be half changed. None: it is free, or the forking thread holds it.
    ///
    /// # Safety
    /// Only in the child, before it has other threads.
    pub unsafe fn seize_orphaned(&self) -> Option<Guard<'_, T>> {
        let me = thread::token();
        let holder = self.word.load(Ordering::Relaxed) & !MARKS;
        if holder == FREE || holder == me {
            return None;
        }
        self.word.store(me, Ordering::Relaxed);
        Some(Guard(self))
    }

    /// Before a fork: asks other threads not to take the lock, and waits for the one that has it. Both for some
    /// milliseconds at most: whoever waits here or there may be what the other waits for.
    pub fn rest_for_fork(&self) {
        let me = thread::token();
        for _ in 0..COURTESY_LOOKS {
            let holder = self.word.fetch_or(FORKING, Ordering::Acquire) & !MARKS;
            if holder == FREE || holder == me {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// After it, in the parent and in the child.
    pub fn end_rest(&self) {
        self.word.fetch_and(!FORKING, Ordering::Release);
    }

    #[inline]
    fn unlock(&self) {
        // A fork's mark goes too: who forks sees the holder gone, and sets it again.
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
        // SAFETY: this guard is the only one alive, so nothing else reaches the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one alive, so nothing else reaches the value.
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
    fn only_a_lock_of_a_vanished_thread_is_an_orphan() {
        let lock = Lock::new(1);
        // SAFETY: no other thread knows this lock.
        unsafe {
            assert!(lock.seize_orphaned().is_none(), "it is free");
            let mine = lock.lock();
            assert!(lock.seize_orphaned().is_none(), "it is this thread's");
            drop(mine);
            std::thread::scope(|scope| {
                scope.spawn(|| std::mem::forget(lock.lock()));
            });
            assert_eq!(lock.seize_orphaned().as_deref(), Some(&1));
        }
        drop(lock.lock());
    }

    #[test]
    fn a_fork_waits_for_the_holder_and_the_others_for_the_fork_but_not_for_long() {
        let lock = Lock::new(0);
        let held = lock.lock();
        lock.rest_for_fork();
        drop(held);
        std::thread::scope(|scope| {
            let held = lock.lock();
            scope.spawn(|| lock.rest_for_fork());
            std::thread::sleep(Duration::from_millis(1));
            drop(held);
        });
        assert!(lock.try_lock().is_none(), "a fork is under way");
        drop(lock.lock());
        lock.rest_for_fork();
        lock.end_rest();
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn a_lock_is_tried_without_waiting() {
        let lock = Lock::new(1);
        let held = lock.try_lock();
        assert!(held.is_some() && lock.try_lock().is_none());
        drop(held);
        assert_eq!(lock.try_lock().as_deref(), Some(&1));
    }
}
