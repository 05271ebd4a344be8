//! A lock for the malloc path: one word, no allocation, no thread-local state, a futex when contended.
//!
//! `std::sync::Mutex` and parking_lot may allocate or poison; neither is allowed inside malloc.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// Critical sections last some hundred nanoseconds: a short spin usually sees the end of one.
const SPINS: u32 = 60;

/// A value behind a futex lock.
pub struct Lock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a `Guard`, and `word` admits one `Guard` at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Proof of holding the lock; gives it back when dropped.
pub struct Guard<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Lock {
            word: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if self
            .word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.wait();
        }
        Guard(self)
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            let seen = self.word.load(Ordering::Relaxed);
            if seen == FREE
                && self
                    .word
                    .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
            if seen == CONTENDED {
                break;
            }
        }
        while self.word.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex(&self.word, libc::FUTEX_WAIT, CONTENDED);
        }
    }

    /// The lock, unless somebody holds it. Never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.word
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| Guard(self))
    }

    /// Takes the lock and keeps it until `release`: fork handlers hold it across the fork.
    pub fn acquire(&self) {
        std::mem::forget(self.lock());
    }

    /// Gives back what `acquire` took. In the forked child this also forgets the waiters of the parent.
    ///
    /// # Safety
    /// The lock is held by an `acquire` that was not released yet: then no guard is alive.
    pub unsafe fn release(&self) {
        self.unlock();
    }

    #[inline]
    fn unlock(&self) {
        if self.word.swap(FREE, Ordering::Release) == CONTENDED {
            futex(&self.word, libc::FUTEX_WAKE, 1);
        }
    }
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    // SAFETY: futex reads `word` only, which outlives the call; a null timeout means none.
    // A spurious or interrupted return is handled by the caller's loop.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            std::ptr::null::<libc::timespec>(),
        );
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
    fn a_held_lock_is_free_after_release() {
        let lock = Lock::new(());
        lock.acquire();
        assert!(lock.try_lock().is_none());
        // SAFETY: acquired above, and not released since.
        unsafe { lock.release() };
        drop(lock.lock());
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
