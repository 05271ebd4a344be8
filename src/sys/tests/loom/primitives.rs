//! `primitives.rs` on loom, and the thread tokens of loom's threads. Only `tests/loom.rs` uses it.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

use loom::sync::{Condvar, Mutex};

pub use std::sync::atomic::Ordering;

// More checks add no new order of accesses, and each makes a run longer.
pub const SPINS: u32 = 1;
pub const MAX_FORK_CHECKS: u32 = 1;

pub fn spin_loop() {
    loom::thread::yield_now();
}

pub fn yield_now() {
    loom::thread::yield_now();
}

pub fn sleep(_: Duration) {
    loom::thread::yield_now();
}

loom::thread_local! {
    static TOKEN: Cell<u64> = Cell::new(0);
}

loom::lazy_static! {
    static ref LAST_TOKEN: Mutex<u64> = Mutex::new(0);
}

/// Different in each thread. Not zero; the low bits are zero.
pub fn token() -> u64 {
    TOKEN.with(|token| {
        if token.get() == 0 {
            let mut last = LAST_TOKEN.lock().expect("no thread panics with the lock");
            *last += 16;
            token.set(*last);
        }
        token.get()
    })
}

/// An atomic with a const constructor: loom's atomic is created at first use.
macro_rules! atomic {
    ($name:ident, $number:ty) => {
        pub struct $name {
            initial: $number,
            atomic: OnceLock<loom::sync::atomic::$name>,
            sleepers: OnceLock<(Mutex<()>, Condvar)>,
        }

        impl $name {
            pub const fn new(initial: $number) -> Self {
                Self {
                    initial,
                    atomic: OnceLock::new(),
                    sleepers: OnceLock::new(),
                }
            }

            fn atomic(&self) -> &loom::sync::atomic::$name {
                self.sleepers
                    .get_or_init(|| (Mutex::new(()), Condvar::new()));
                self.atomic
                    .get_or_init(|| loom::sync::atomic::$name::new(self.initial))
            }

            pub fn load(&self, order: Ordering) -> $number {
                self.atomic().load(order)
            }

            pub fn store(&self, value: $number, order: Ordering) {
                self.atomic().store(value, order);
            }

            pub fn swap(&self, value: $number, order: Ordering) -> $number {
                self.atomic().swap(value, order)
            }

            pub fn fetch_or(&self, value: $number, order: Ordering) -> $number {
                self.atomic().fetch_or(value, order)
            }

            pub fn fetch_and(&self, value: $number, order: Ordering) -> $number {
                self.atomic().fetch_and(value, order)
            }

            pub fn compare_exchange(
                &self,
                from: $number,
                to: $number,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$number, $number> {
                self.atomic().compare_exchange(from, to, success, failure)
            }
        }
    };
}

atomic!(AtomicU64, u64);
atomic!(AtomicU8, u8);

/// The kernel compares the word and sleeps under an internal lock, which a waker takes, too.
pub fn wait(word: &AtomicU64, value: u64) {
    word.atomic();
    let (lock, sleepers) = word.sleepers.get().expect("created with the atomic");
    let awake = lock.lock().expect("no thread panics with the lock");
    if word.load(Ordering::SeqCst) as u32 == value as u32 {
        drop(sleepers.wait(awake));
    }
}

pub fn wake_one(word: &AtomicU64) {
    let (lock, sleepers) = word.sleepers.get().expect("created by the first access");
    let _awake = lock.lock().expect("no thread panics with the lock");
    sleepers.notify_one();
}
